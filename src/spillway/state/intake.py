"""From shuffled batches to the deltas of one epoch.

A batch on the wire mixes the inputs: a tag, the hash, and slots that inputs share by type. Intake splits it
by tag. Up to a quota of rows becomes deltas, sorted by hash; what exceeds it is parked as it streams by, so
a batch of any size passes through bounded memory and is probed in later epochs.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from spillway.state.operator import HASH_WIRE_COLUMN, TAG_COLUMN, JoinOperator, WireInput
from spillway.state.pending import Pending, PendingWriter, read_pending
from spillway.state.segment import Segment, concat, rows_only, sorted_segment, take
from spillway.state.storage import Storage


class Intake:
    """Collects the rows of one epoch of one processor."""

    def __init__(self, operator: JoinOperator, quota_rows: int) -> None:
        self._operator = operator
        self._left = quota_rows
        self._parts: list[list[Segment]] = [[] for _ in operator.inputs]
        self.input_rows = 0

    @property
    def rows_left(self) -> int:
        return self._left

    def drain(self, storage: Storage, queue: tuple[Pending, ...]) -> int:
        """Take pending rows up to the quota; returns how many rows of the queue that consumed."""
        consumed = 0
        for entry in queue:
            if self._left <= 0:
                break
            rows, segment = read_pending(storage, entry, self._operator.groups, self._left)
            self._parts[entry.input].append(segment)
            self._left -= segment.rows
            consumed += rows
            if rows < entry.rows_left:
                break
        return consumed

    def receive(self, batches: Iterable[pa.RecordBatch], overflow: list[PendingWriter]) -> None:
        """Take arriving rows up to the quota and park the others."""
        taken: list[pa.RecordBatch] = []
        for batch in batches:
            self.input_rows += batch.num_rows
            fits = min(max(self._left, 0), batch.num_rows)
            if fits:
                taken.append(batch.slice(0, fits))
                self._left -= fits
            if fits < batch.num_rows:
                for writer, rows in zip(overflow, self._split(batch.slice(fits)), strict=True):
                    writer.write(rows)
        if taken:
            whole = pa.Table.from_batches(taken).combine_chunks().to_batches()
            for batch in whole:
                for parts, rows in zip(self._parts, self._split(batch), strict=True):
                    parts.append(rows)

    def deltas(self) -> list[Segment | None]:
        """The collected rows per input in hash order; None where there are none."""
        return [_gathered(parts) for parts in self._parts]

    def _split(self, batch: pa.RecordBatch) -> list[Segment]:
        tags = batch.column(TAG_COLUMN).to_numpy()
        hashes = batch.column(HASH_WIRE_COLUMN).to_numpy()
        pieces = []
        for number, wire in enumerate(self._operator.inputs):
            rows = np.flatnonzero(tags == number)
            rows = rows[np.argsort(hashes[rows], kind="stable")]
            pieces.append(Segment(hashes[rows], take(_columns(batch, wire), rows)))
        return pieces


def _columns(batch: pa.RecordBatch, wire: WireInput) -> pa.RecordBatch:
    if not wire.columns:
        return rows_only(batch.num_rows)
    return pa.RecordBatch.from_arrays([batch.column(slot) for slot in wire.slots], names=list(wire.columns))


def _gathered(parts: list[Segment]) -> Segment | None:
    parts = [part for part in parts if part.rows]
    if not parts:
        return None
    if len(parts) == 1:
        one = parts[0]
        is_sorted = bool((one.hashes[1:] >= one.hashes[:-1]).all())
        return one if is_sorted else sorted_segment(one.hashes, one.columns)
    hashes = np.concatenate([part.hashes for part in parts])
    return sorted_segment(hashes, concat([part.columns for part in parts]))
