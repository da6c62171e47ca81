"""Rows of an epoch that wait in memory to be written: those of several rounds become one run of an input."""

from collections.abc import Iterator

import pyarrow as pa

from spillway.state.rows import SortedRows

NESTED_COPIES = 2
"""Arrow makes nested values by doubling their buffers, so what is merged may take twice its size."""


class Unwritten:
    def __init__(self, inputs: int) -> None:
        self._parts: list[list[SortedRows]] = [[] for _ in range(inputs)]
        self._bytes = [0 for _ in range(inputs)]

    @property
    def bytes(self) -> int:
        return sum(self._bytes)

    def add(self, input_: int, rows: SortedRows) -> None:
        self._parts[input_].append(rows)
        nested = any(pa.types.is_nested(kind) for kind in rows.columns.schema.types)
        self._bytes[input_] += rows.nbytes * (NESTED_COPIES if nested else 1)

    def most_first(self, most_bytes: int) -> Iterator[tuple[int, list[SortedRows]]]:
        """The rows to be written now, by input, the largest first, until at most this many bytes are left."""
        while self.bytes > most_bytes:
            largest = max(range(len(self._bytes)), key=self._bytes.__getitem__)
            parts, self._parts[largest] = self._parts[largest], []
            yield largest, parts
            del parts
            self._bytes[largest] = 0
