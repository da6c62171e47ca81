"""A sorted piece of one operator input's state, ready to be probed.

`hashes` ascends and row i of `columns` has hash `hashes[i]`. `live` says which groups of the piece belong to
the current generation on this processor; rows of other groups are physically there (a group that was
spilled or moved away leaves its rows until the next merge) but do not exist for a probe.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spillway.state.group import BoolArray, Int64Array, cut


@dataclass(frozen=True, slots=True)
class Segment:
    hashes: Int64Array
    columns: pa.RecordBatch
    live: BoolArray | None = None

    @property
    def rows(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes) + int(self.columns.nbytes)

    def live_rows(self, groups: int) -> Int64Array | None:
        """The positions of the rows that count, ascending, or None when all do."""
        if self.live is None or bool(self.live.all()):
            return None
        sizes = np.diff(cut(self.hashes, groups))
        return np.flatnonzero(np.repeat(self.live, sizes)).astype(np.int64)

    def only_live(self, groups: int) -> "Segment":
        rows = self.live_rows(groups)
        if rows is None:
            return Segment(self.hashes, self.columns)
        return Segment(self.hashes[rows], take(self.columns, rows))


def sorted_segment(hashes: Int64Array, columns: pa.RecordBatch) -> Segment:
    order = np.argsort(hashes, kind="stable")
    return Segment(hashes[order], take(columns, order))


def take(columns: pa.RecordBatch, rows: Int64Array) -> pa.RecordBatch:
    return columns.take(pa.array(rows))


def rows_only(rows: int) -> pa.RecordBatch:
    """A batch of `rows` rows and no columns: state of an input of which only the key matters."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))


def merge(segments: Sequence[Segment], groups: int) -> Segment:
    """All live rows of the segments in hash order.

    Stable: rows of equal hash keep the order of the segments. The position of a match among the matches of
    its key therefore never changes by merging, which is what lets a probe stop inside a row and go on later.
    """
    live = [segment.only_live(groups) for segment in segments]
    live = [segment for segment in live if segment.rows]
    if not live:
        return segments[0].only_live(groups)
    if len(live) == 1:
        return live[0]
    hashes = np.concatenate([segment.hashes for segment in live])
    order = np.argsort(hashes, kind="stable")
    columns = concat([segment.columns for segment in live])
    return Segment(hashes[order], take(columns, order))


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    if batches[0].num_columns == 0:
        return rows_only(sum(batch.num_rows for batch in batches))
    return pa.concat_batches(batches)
