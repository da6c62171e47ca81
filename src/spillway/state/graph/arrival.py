"""The rows that Spark brings to the lowest level of a graph, shared out among its operators.

Rows of the operator that runs first stream through as they arrive. Those of others are put aside in files.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spillway.errors import StateError
from spillway.state.graph.exchange import DIRECTORY, ExchangeFile, read_exchange
from spillway.state.graph.graph import Graph
from spillway.state.rows import Int64Array, flags, group_of
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN, WireInput
from spillway.state.storage import Storage

Int8Array = np.typing.NDArray[np.int8]
MOST_SLICES = 16
"""Into more pieces than this, rows of a batch are not cut: they are collected per operator."""


class Arrival:
    def __init__(self, graph: Graph, storage: Storage, stem: str, batches: Iterable[pa.RecordBatch]) -> None:
        """`stem` is where names of files of this attempt begin."""
        self._graph = graph
        self._storage = storage
        self._batches = iter(batches)
        self._rows = 0
        self._writers = {
            join: ExchangeFile(storage, f"{DIRECTORY}/{stem}-in-{join}.arrow")
            for join in range(len(graph.operators))
        }
        self._ended = False
        tags = graph.tags
        self._join_of = np.array([join for join, _ in tags], dtype=np.int64)
        self._input_of = np.array([number for _, number in tags], dtype=np.int8)
        counted, groups = graph.counted, graph.operator_groups
        self._counted = None if counted is None else np.array([flags(mask, groups) for mask in counted])

    def rows_of(self, join: int) -> Iterator[pa.RecordBatch]:
        """The rows of one join; while the first is asked for, those of the others are put aside."""
        if not self._ended:
            yield from self._sorted_out(join)
            return
        writer = self._writers[join]
        if writer.rows:
            yield from read_exchange(self._storage, [writer.name])

    def finish(self) -> int:
        """How many rows came; all of them are read by now."""
        for _ in self._batches:
            raise StateError("rows of an epoch came that no join has read; this is a bug of Spillway")
        return self._rows

    @property
    def later(self) -> dict[int, str]:
        """Files for joins of higher levels."""
        levels = self._graph.levels
        return {join: file.name for join, file in self._writers.items() if levels[join] > 0 and file.rows}

    def _sorted_out(self, join: int) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            tags = batch.column(TAG_COLUMN).to_numpy()
            self._rows += self._arrived(batch, tags)
            owners = self._join_of[tags]
            for other, rows in by_owner(owners):
                piece = self._piece(batch, tags, rows, other)
                if other == join:
                    yield piece
                else:
                    self._writers[other].write(piece)
                del piece, rows
            del batch, tags, owners  # before the next one is there
        for writer in self._writers.values():
            writer.close()
        self._ended = True

    def _arrived(self, batch: pa.RecordBatch, tags: Int8Array) -> int:
        """How many rows a batch has, of copies the first ones only."""
        if self._counted is None:
            return int(batch.num_rows)
        groups = group_of(batch.column(HASH_WIRE_COLUMN).to_numpy(), self._graph.operator_groups)
        return int(self._counted[tags, groups].sum())

    def _piece(
        self, batch: pa.RecordBatch, tags: Int8Array, rows: slice | Int64Array, join: int
    ) -> pa.RecordBatch:
        """Some rows of a batch as one join knows them: its own numbers of inputs, and only its columns."""
        inputs = self._graph.operators[join].inputs
        names = [name for name in batch.schema.names if name == TAG_COLUMN or name in _wanted(inputs)]
        columns = batch.select(names)
        if isinstance(rows, slice):
            piece = columns.slice(rows.start, rows.stop - rows.start)
        else:
            piece = columns.take(pa.array(rows))
        numbers = pa.array(self._input_of[tags[rows]])
        return piece.set_column(piece.schema.get_field_index(TAG_COLUMN), TAG_COLUMN, numbers)


def by_owner(owners: Int64Array) -> Iterator[tuple[int, slice | Int64Array]]:
    """Rows by the join that they are for. Rows of one source mostly come together: then as they lie."""
    ends = [*(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist(), len(owners)]
    if len(ends) <= MOST_SLICES:
        for start, end in pairwise([0, *ends]):
            if start < end:
                yield int(owners[start]), slice(start, end)
        return
    for owner in np.unique(owners):
        yield int(owner), np.flatnonzero(owners == owner)


def _wanted(inputs: Sequence[WireInput]) -> set[str]:
    return {HASH_WIRE_COLUMN, *(slot for wire in inputs for slot in wire.slots)}
