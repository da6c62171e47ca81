"""From pending files and shuffled batches to the deltas of one epoch.

A batch on the wire mixes the inputs: a tag, the hash, and slots that inputs share by type. Intake splits it
by tag. It hands out rounds: deltas sorted by hash, each round as large as memory allows, until the epoch's
quota of rows is used up. What is left is parked as it streams by, so a batch of any size passes through
bounded memory and is probed in later epochs.

Instants are in UTC: Arrow writes the time zone of Spark's session into the type of a timestamp, and arrays of
two zones cannot be concatenated. So a restart in another zone goes on with the runs of the first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
from pyarrow import types

from spillway.state.orders import Limits
from spillway.state.rows import (
    Int64Array,
    Pending,
    PendingReader,
    SortedRows,
    concat,
    group_counts,
    rows_only,
    sort_rows,
    take,
)
from spillway.state.step.meter import MemoryMeter
from spillway.state.step.operator import HASH_WIRE_COLUMN, TAG_COLUMN, WireInput
from spillway.state.step.parked_input import PARKED_PARTS, ParkedInput
from spillway.state.step.task import Task


def utc_type(kind: pa.DataType) -> pa.DataType:
    """`kind` with every instant in it, nested ones included, in UTC."""
    if types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")
    if types.is_map(kind):
        return pa.map_(_utc_field(kind.key_field), _utc_field(kind.item_field))
    if types.is_list(kind):
        return pa.list_(_utc_field(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_utc_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_utc_field(part) for part in kind])
    return kind


def in_utc(array: pa.Array) -> pa.Array:
    """The same instants; nothing is copied where there are none or they are in UTC already."""
    kind = utc_type(array.type)
    return array if kind == array.type else array.cast(kind)


def _utc_field(field: pa.Field) -> pa.Field:
    return field.with_type(utc_type(field.type))


Deltas = list[SortedRows | None]
"""Rows per input in hash order; None where there are none."""
_NO_ROWS = SortedRows(np.zeros(0, dtype=np.int64), rows_only(0))


class Intake:
    """The input of one epoch of one processor, in rounds."""

    def __init__(
        self,
        task: Task,
        limits: Limits,
        meter: MemoryMeter,
        parked: ParkedInput,
        queue: Iterable[Pending],
        batches: Iterable[pa.RecordBatch],
    ) -> None:
        """`queue` is taken in before `batches`; `limits` are those of the orders, or less."""
        self._operator = task.operator
        self._watermark = task.orders.watermark
        self._reader = PendingReader(task.storage, task.operator.groups)
        self._round_bytes = limits.round_bytes
        self._rows_left = limits.rows
        self._meter = meter
        self._parked = parked
        self._queue = list(queue)
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None
        """What an earlier round left of the batch that it cut."""
        self.input_rows = 0
        self.late_rows = 0
        self.null_time_rows = 0
        self.latest: list[int | None] = [None for _ in task.operator.windows]

    def round(self) -> Deltas | None:
        """The next deltas, or None when the quota or the input is used up."""
        room = _Room(self._rows_left, self._round_bytes)
        parts: list[list[SortedRows]] = [[] for _ in self._operator.inputs]
        self._drain(room, parts)
        if not self._queue:
            self._receive(room, parts)
        self._rows_left -= room.taken
        return [_gathered(of_input) for of_input in parts] if room.taken else None

    def segments(self) -> Iterator[list[SortedRows]]:
        """All further arriving rows, per input and batch."""
        while (batch := self._next()) is not None:
            yield self._split(batch)
            del batch  # before the next one is there

    def park(self) -> list[Pending]:
        """Park all further arriving rows; returns what the queue still holds, then these."""
        writers = self._parked.writers("overflow")
        while (batch := self._next()) is not None:
            size = -(-batch.num_rows // PARKED_PARTS)
            for start in range(0, batch.num_rows, max(1, size)):
                pieces = self._split(batch.slice(start, size))
                self._meter.sample()
                for writer, rows in zip(writers, pieces, strict=True):
                    writer.write(rows)
                del pieces, rows
            del batch  # before the next one is there
        self._meter.sample()
        return [*self._queue, *(entry for writer in writers for entry in writer.close())]

    def _drain(self, room: "_Room", parts: list[list[SortedRows]]) -> None:
        while self._queue:
            entry = self._queue[0]
            limit = room.fitting(entry.rows_left, entry.row_bytes)
            if not limit:
                return
            rows, segment = self._reader.read(entry, limit)
            if segment.nbytes > room.bytes:  # larger rows than those of the file are on average
                limit = room.fitting(segment.rows, -(-segment.nbytes // segment.rows))
                if not limit:
                    return
                rows, segment = self._reader.read(entry, limit)
            parts[entry.input].append(segment)
            room.take(segment.rows, segment.nbytes)
            if rows < entry.unread_rows:
                left = entry.after(rows, group_counts(segment, self._operator.groups))
                self._queue[:1] = [left] if left.groups else []
                return
            self._queue.pop(0)

    def _receive(self, room: "_Room", parts: list[list[SortedRows]]) -> None:
        taken: list[pa.RecordBatch] = []
        while (batch := self._next()) is not None:
            row_bytes = -(-batch.nbytes // max(1, batch.num_rows))
            fits = room.fitting(batch.num_rows, row_bytes)
            if fits:
                taken.append(batch.slice(0, fits))
                room.take(fits, fits * row_bytes)
            if fits < batch.num_rows:
                self._rest = batch.slice(fits)
                break
        combined = list(_combined(taken))
        del taken, batch
        for batch in combined:
            for of_input, rows in zip(parts, self._split(batch), strict=True):
                of_input.append(rows)
        self._meter.sample()

    def _next(self) -> pa.RecordBatch | None:
        """The next batch, first what is left of one that was cut.

        Not a generator over `_batches`: one that is left in the middle closes what it reads from, and the
        batches that follow would be lost.
        """
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        batch = next(self._batches, None)
        if batch is not None:
            self.input_rows += batch.num_rows
        return batch

    def _split(self, batch: pa.RecordBatch) -> list[SortedRows]:
        tags = batch.column(TAG_COLUMN).to_numpy()
        hashes = batch.column(HASH_WIRE_COLUMN).to_numpy()
        pieces = []
        for number, wire in enumerate(self._operator.inputs):
            rows = np.flatnonzero(tags == number)
            if not len(rows):  # a batch of another input need not have its columns
                pieces.append(_NO_ROWS)
                continue
            if self._operator.windows and not self._operator.windows[number].derived:
                rows = self._in_time(number, rows, batch)
            rows = rows[np.argsort(hashes[rows], kind="stable")]
            columns = state_columns(batch, wire)
            if self._parked.suspended is not None:
                rows = self._parked.suspended.without(number, hashes, columns, rows)
            pieces.append(SortedRows(hashes[rows], take(columns, rows)))
        return pieces

    def _in_time(self, number: int, rows: Int64Array, batch: pa.RecordBatch) -> Int64Array:
        """The rows that have an event time and are not late; also notes the youngest of them."""
        column = self._operator.windows[number].column
        slot = batch.column(self._operator.inputs[number].slots[column])
        own = slot.take(pa.array(rows))  # other inputs may have null there
        if own.null_count:
            self.null_time_rows += own.null_count
            rows, own = rows[own.is_valid().to_numpy(zero_copy_only=False)], own.drop_null()
            if not len(rows):
                return rows
        times = own.to_numpy()
        latest, known = int(times.max()), self.latest[number]
        self.latest[number] = latest if known is None else max(known, latest)
        if self._watermark is None:
            return rows
        in_time: Int64Array = rows[times >= self._watermark]
        self.late_rows += len(rows) - len(in_time)
        return in_time


@dataclass(slots=True)
class _Room:
    """What is left of one round."""

    rows: int
    bytes: int
    taken: int = field(default=0)

    def fitting(self, rows: int, row_bytes: int) -> int:
        """How many of these rows of this size fit; the first row of a round always does."""
        fits = max(0, min(rows, self.rows, self.bytes // max(1, row_bytes)))
        return 1 if not fits and not self.taken and min(rows, self.rows) > 0 else fits

    def take(self, rows: int, size: int) -> None:
        self.rows -= rows
        self.bytes -= size
        self.taken += rows


def _combined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As few batches as there are neighbours with different columns: those of sources, and of joins below."""
    for _, group in groupby(batches, key=lambda batch: batch.schema):
        alike = list(group)
        yield from alike if len(alike) == 1 else pa.Table.from_batches(alike).combine_chunks().to_batches()


def state_columns(batch: pa.RecordBatch, wire: WireInput) -> pa.RecordBatch:
    """The columns of an input as they are in state."""
    if not wire.columns:
        return rows_only(batch.num_rows)
    arrays = [in_utc(batch.column(slot)) for slot in wire.slots]
    return pa.RecordBatch.from_arrays(arrays, names=list(wire.columns))


def _gathered(parts: list[SortedRows]) -> SortedRows | None:
    parts = [part for part in parts if part.rows]
    if not parts:
        return None
    if len(parts) == 1:
        (part,) = parts
        is_sorted = bool((part.hashes[1:] >= part.hashes[:-1]).all())
        return part if is_sorted else sort_rows(part.hashes, part.columns)
    hashes = np.concatenate([part.hashes for part in parts])
    return sort_rows(hashes, concat([part.columns for part in parts]))
