"""A sorted piece of one operator input's state, ready to be probed.

`hashes` ascends and row i of `columns` has hash `hashes[i]`. `live` says which groups of the piece belong to
the current generation on this processor; rows of other groups are physically there (a group that was
spilled or moved away leaves its rows until the next merge) but do not exist for a probe.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spillway.state.rows.group import BoolArray, Int64Array, group_of, group_offsets
from spillway.state.rows.hash_filter import HashFilter

OPEN_BYTES, ARRAY_BYTES = 2900, 400
"""What a mapped batch and each of its arrays take as objects, as measured."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    hashes: Int64Array
    columns: pa.RecordBatch
    live: BoolArray | None = None
    filter: HashFilter | None = None
    """Of all hashes, those of groups that are not live included."""

    @property
    def rows(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes) + int(self.columns.nbytes)

    @property
    def row_bytes(self) -> float:
        """The mean size of a row."""
        return self.nbytes / max(1, self.rows)

    @property
    def open_bytes(self) -> int:
        """What it takes to have it mapped, besides its values."""
        return open_bytes(sum(_arrays(field.type) for field in self.columns.schema))

    def slice(self, start: int, stop: int) -> "SortedRows":
        """Some rows of a segment all of whose rows count; nothing is copied."""
        return SortedRows(self.hashes[start:stop], self.columns.slice(start, stop - start))

    def take(self, positions: Int64Array) -> "SortedRows":
        """The rows at these positions, all of which count."""
        return SortedRows(self.hashes[positions], take(self.columns, positions))

    def matches(self, needles: Int64Array, groups: int) -> tuple[Int64Array, Int64Array]:
        """The positions of the live rows of these hashes, and for each which of the hashes it has."""
        low = np.searchsorted(self.hashes, needles, side="left")
        counts = np.searchsorted(self.hashes, needles, side="right") - low
        if self.live is not None:
            counts = counts * self.live[group_of(needles, groups)]
        of = np.repeat(np.arange(len(needles)), counts)
        offsets = np.cumsum(counts) - counts
        return np.repeat(low - offsets, counts) + np.arange(len(of)), of

    def live_rows(self, groups: int) -> Int64Array | None:
        """The positions of the rows that count, ascending, or None when all do."""
        if self.live is None or bool(self.live.all()):
            return None
        sizes = np.diff(group_offsets(self.hashes, groups))
        return np.flatnonzero(np.repeat(self.live, sizes)).astype(np.int64)

    def live_bytes(self, groups: int) -> float:
        """The size of the rows that count, if all rows are of about the same size."""
        rows = self.live_rows(groups)
        return self.nbytes if rows is None else self.row_bytes * len(rows)

    def only_live(self, groups: int) -> "SortedRows":
        rows = self.live_rows(groups)
        if rows is None:
            return SortedRows(self.hashes, self.columns)
        return self.take(rows)


def open_bytes(arrays: int) -> int:
    """What it takes to have a batch of this many arrays mapped, besides its values."""
    return OPEN_BYTES + ARRAY_BYTES * arrays


def _arrays(kind: pa.DataType) -> int:
    """How many arrays make up a column of this type."""
    return 1 + sum(_arrays(kind.field(number).type) for number in range(kind.num_fields))


def sort_rows(hashes: Int64Array, columns: pa.RecordBatch) -> SortedRows:
    order = np.argsort(hashes, kind="stable")
    return SortedRows(hashes[order], take(columns, order))


def take(columns: pa.RecordBatch, rows: Int64Array) -> pa.RecordBatch:
    return columns.take(pa.array(rows))


def rows_only(rows: int) -> pa.RecordBatch:
    """A batch of `rows` rows and no columns: state of an input of which only the key matters."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))


def merge(
    segments: Sequence[SortedRows], groups: int, sample: Callable[[], None] = lambda: None
) -> SortedRows:
    """All live rows of the segments in hash order.

    Stable: rows of equal hash keep the order of the segments. The position of a match among the matches of
    its key therefore never changes by merging, which is what lets a probe stop inside a row and go on later.
    Column by column, so that besides the result only one column is there as a copy. `sample` is called then.
    """
    live = [(segment, segment.live_rows(groups)) for segment in segments]
    live = [(segment, rows) for segment, rows in live if (segment.rows if rows is None else len(rows))]
    if len(live) < 2:
        return (live[0][0] if live else segments[0]).only_live(groups)
    hashes = np.concatenate([part.hashes if rows is None else part.hashes[rows] for part, rows in live])
    order = np.argsort(hashes, kind="stable")
    schema = live[0][0].columns.schema
    if not len(schema):
        return SortedRows(hashes[order], rows_only(len(order)))
    columns = []
    for number in range(len(schema)):
        whole = _together(live, number)
        columns.append(whole.take(pa.array(order)))
        sample()
        del whole
    return SortedRows(hashes[order], pa.RecordBatch.from_arrays(columns, schema=schema))


def _together(live: Sequence[tuple[SortedRows, Int64Array | None]], number: int) -> pa.Array:
    """The live rows of one column of some segments."""
    columns = [segment.columns.column(number) for segment, _ in live]
    return pa.concat_arrays(
        [
            column if rows is None else column.take(pa.array(rows))
            for column, (_, rows) in zip(columns, live, strict=True)
        ]
    )


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    if batches[0].num_columns == 0:
        return rows_only(sum(batch.num_rows for batch in batches))
    return pa.concat_batches(batches)
