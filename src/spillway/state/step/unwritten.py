"""Rows of an epoch that wait in memory to be written: those of several rounds become one run of an input."""

from collections.abc import Iterator

from spillway.state.rows import SortedRows


class Unwritten:
    def __init__(self, inputs: int) -> None:
        self._parts: list[list[SortedRows]] = [[] for _ in range(inputs)]
        self._bytes = [0 for _ in range(inputs)]

    @property
    def bytes(self) -> int:
        return sum(self._bytes)

    def add(self, input_: int, rows: SortedRows) -> None:
        self._parts[input_].append(rows)
        self._bytes[input_] += rows.nbytes

    def most_first(self, most_bytes: int) -> Iterator[tuple[int, list[SortedRows]]]:
        """The rows to be written now, by input, the largest first, until at most this many bytes are left."""
        while self.bytes > most_bytes:
            largest = max(range(len(self._bytes)), key=self._bytes.__getitem__)
            parts, self._parts[largest] = self._parts[largest], []
            yield largest, parts
            del parts
            self._bytes[largest] = 0
