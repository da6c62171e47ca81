"""One processor's part of one epoch of a grouped windowed aggregate: final rows with their statistics.

A row is final when its event time is below the watermark: no row can come any more that is in its frame or
before it in order. Rows that are not final wait as pending. All final rows of a group are taken together, and
whatever comes later for the group is younger, so a key's rows are processed in their order.
State has the rows whose results are out and that frames of later rows may reach.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from spillway.plan.expression import ColumnRef
from spillway.plan.operators import STATISTICS
from spillway.state.frame.final_rows import FinalRows
from spillway.state.frame.frames import OrderedRows, keys_differ, ordered_rows
from spillway.state.frame.operator import FrameOperator
from spillway.state.frame.statistics import statistics_of
from spillway.state.orders import Report
from spillway.state.rows import (
    EventTimes,
    Int64Array,
    Pending,
    PendingWriter,
    SortedRows,
    concat,
    group_of,
    group_offsets,
    read_pending,
    take,
)
from spillway.state.step import Attempt, Clock, Intake, nonzero


@dataclass(slots=True)
class FrameStep(Attempt[FrameOperator]):
    served_rows: Int64Array = field(init=False)
    """Rows whose results were produced, by group; few of them stay in state."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        busy = time.process_time()
        orders = self.orders
        self._prepare()
        if orders.clean:  # no group is ever split, so there is nothing to clean up
            return replace(self._report(busy, ()), pending=(*orders.pending, *orders.suspended_pending))
        reached = [e.earliest for e in orders.pending if e.earliest is not None]
        if orders.watermark is not None:
            self.expiry = replace(self.expiry, watermark=min([orders.watermark, *reached]))
        self._open()
        self.served_rows = np.zeros(self.operator.groups, dtype=np.int64)
        suspended = self._suspended_input()
        intake = Intake(
            self.operator,
            orders.limits,
            self.storage,
            (),
            batches,
            orders.watermark,
            suspended,
            self.meter.sample,
        )
        early = self._pending_writer("early", 0)
        waiting = self._rounds(intake, early)
        with Clock(self.seconds, "park"):
            waiting += [
                *early.close(),
                *orders.suspended_pending,
                *(suspended.close() if suspended is not None else ()),
            ]
        with Clock(self.seconds, "write"):
            files = self.writer.close()
            self.meter.sample()
        return replace(
            self._changes(busy, files, intake),
            pending=tuple(waiting),
            probed_rows=int(self.served_rows.sum()),
            served_rows=nonzero(self.served_rows),
        )

    def _rounds(self, intake: Intake, early: PendingWriter) -> list[Pending]:
        """Process the final rows, as many groups at a time as memory allows; returns what is left to wait."""
        orders, limits = self.orders, self.orders.limits
        ripe = [entry for entry in orders.pending if orders.ending or entry.has_final(orders.watermark)]
        waiting = [entry for entry in orders.pending if entry not in ripe]
        rows_left = min(limits.rows, limits.results)
        for number in range(self.operator.groups):
            with Clock(self.seconds, "receive"):
                others = self._pending_writer(f"rest{number}", 0)
                final = FinalRows(self.operator.groups, rows_left, limits.round_bytes, others)
                for entry in ripe:
                    _, rows = read_pending(self.storage, entry, self.operator.groups, entry.rows)
                    final.add(self._final(rows, early))
                for (rows,) in intake.segments():
                    final.add(self._final(rows, early))
                ripe = others.close()
                delta = final.gathered()
                self.meter.sample()
            if delta is not None:
                with Clock(self.seconds, "compute"):
                    self._compute(delta, f"{number:04d}")
                groups = group_of(delta.hashes, self.operator.groups)
                self.served_rows += np.bincount(groups, minlength=self.operator.groups)
                rows_left -= delta.rows
                self.advanced = True
            if not ripe or rows_left <= 0 or not self._has_room():
                break
        return [*ripe, *waiting]

    def _final(self, rows: SortedRows, early: PendingWriter) -> SortedRows:
        """The final ones of the rows; the others are parked."""
        if self.orders.ending or not rows.rows:
            return rows
        watermark = self.orders.watermark
        times = self._times(rows)
        final = times < watermark if watermark is not None else np.zeros(rows.rows, dtype=np.bool_)
        if final.all():
            return rows
        early.write(_chosen(rows, np.flatnonzero(~final)))
        return _chosen(rows, np.flatnonzero(final))

    def _compute(self, delta: SortedRows, label: str) -> None:
        operator, limits = self.operator, self.orders.limits
        tail = self._tail(delta)
        columns = concat([tail.columns, delta.columns.select(list(range(operator.kept)))])
        ordered = self._ordered(np.concatenate([tail.hashes, delta.hashes]), columns)
        at = np.flatnonzero(ordered.rows >= tail.rows)
        statistics = statistics_of(operator.statistics, columns, ordered, at)
        rows = _chosen(delta, ordered.rows[at] - tail.rows)
        self.meter.sample()
        for start in range(0, rows.rows, limits.chunk_rows):
            size = min(limits.chunk_rows, rows.rows - start)
            piece = rows.columns.slice(start, size)
            found = [one.slice(start, size) for one in statistics]
            self.writer.write_rows(
                rows.hashes[start : start + size],
                operator.outputs,
                partial(_column, piece, found),
            )
            self.meter.sample()
        since = operator.needed_since(self.orders.watermark)
        stays = ordered.needed(operator.kept_rows, since)[at]
        self._keep(_chosen(rows, np.flatnonzero(stays)), label)

    def _keep(self, rows: SortedRows, label: str) -> None:
        """Rows whose results are out become state."""
        if not rows.rows:
            return
        kept = SortedRows(rows.hashes, rows.columns.select(list(range(self.operator.kept))))
        _, image = self._write_run(label, 0, kept, self._next_position(), self.orders.sequence)
        self.state[0] = [*self.state[0], image]
        self._note_grown(0, kept)

    def _tail(self, delta: SortedRows) -> SortedRows:
        """The state rows of the keys of the delta, as far as its frames may reach them."""
        groups, operator = self.operator.groups, self.operator
        needles = np.unique(delta.hashes)
        since = None if operator.kept_rows else operator.needed_since(int(self._times(delta).min()))
        parts = []
        for segment in self.state[0]:
            rows, _ = _matching(segment, needles, groups)
            if since is not None:
                rows = rows[self._times(segment)[rows] >= since]
            if len(rows):
                parts.append(_chosen(segment, rows))
        if not parts:
            nothing = delta.columns.select(list(range(operator.kept))).slice(0, 0)
            return SortedRows(np.empty(0, dtype=np.int64), nothing)
        return SortedRows(
            np.concatenate([part.hashes for part in parts]), concat([part.columns for part in parts])
        )

    def _in_window(self, number: int, rows: SortedRows, newer: Sequence[SortedRows]) -> SortedRows:  # noqa: ARG002
        """The rows of a merge that later frames may reach, in the order of their keys."""
        if not rows.rows:
            return rows
        operator, groups = self.operator, self.operator.groups
        ordered = self._ordered(rows.hashes, rows.columns)
        last = operator.kept_rows
        count = np.maximum(0, last - self._rows_after(rows, ordered, newer)) if last else last
        needed = ordered.needed(count, operator.needed_since(self.expiry.watermark))
        left = _chosen(rows, ordered.rows[needed])
        if left.rows < rows.rows:
            self._note_expired(
                np.diff(group_offsets(rows.hashes, groups)) - np.diff(group_offsets(left.hashes, groups)),
                rows,
            )
        return left

    def _rows_after(self, rows: SortedRows, ordered: OrderedRows, newer: Sequence[SortedRows]) -> Int64Array:
        """Per row in order, how many rows of its key are in newer state."""
        firsts, sizes = np.unique(ordered.begins, return_counts=True)
        heads = ordered.rows[firsts]
        keys = [rows.columns.column(column).take(pa.array(heads)) for column in self.operator.key_columns]
        counts = np.zeros(len(heads), dtype=np.int64)
        for segment in newer:
            found, of = _matching(segment, rows.hashes[heads], self.operator.groups)
            theirs = [segment.columns.column(c).take(pa.array(found)) for c in self.operator.key_columns]
            mine = [key.take(pa.array(of)) for key in keys]
            same = of[~keys_differ(mine, theirs, len(of))]
            counts += np.bincount(same, minlength=len(heads))
        return np.repeat(counts, sizes)

    def _event_times(self, number: int, segment: SortedRows) -> EventTimes | None:
        """With frames of rows a run is swept of what newer rows of its key make superfluous."""
        times = self.expiry.times(number, segment)
        if times is None or not self.operator.kept_rows or self.orders.watermark is None:
            return times
        return times._replace(swept=self.orders.watermark)

    def _ordered(self, hashes: Int64Array, columns: pa.RecordBatch) -> OrderedRows:
        operator = self.operator
        return ordered_rows(hashes, columns, operator.key_columns, operator.time, operator.order)

    def _times(self, rows: SortedRows) -> Int64Array:
        return np.asarray(rows.columns.column(self.operator.time).to_numpy(), dtype=np.int64)


def _column(rows: pa.RecordBatch, statistics: list[pa.Array], ref: ColumnRef) -> pa.Array:
    return statistics[ref.column] if ref.input == STATISTICS else rows.column(ref.column)


def _chosen(segment: SortedRows, rows: Int64Array) -> SortedRows:
    return SortedRows(segment.hashes[rows], take(segment.columns, rows))


def _matching(segment: SortedRows, needles: Int64Array, groups: int) -> tuple[Int64Array, Int64Array]:
    """The live rows of these hashes, and for each which of the hashes it has."""
    low = np.searchsorted(segment.hashes, needles, side="left")
    counts = np.searchsorted(segment.hashes, needles, side="right") - low
    if segment.live is not None:
        counts = counts * segment.live[group_of(needles, groups)]
    of = np.repeat(np.arange(len(needles)), counts)
    offsets = np.cumsum(counts) - counts
    return np.repeat(low - offsets, counts) + np.arange(len(of)), of
