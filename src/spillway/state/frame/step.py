"""One processor's part of one epoch of a grouped windowed aggregate: final rows with their statistics.

A row is final when its event time is below the watermark: no row can come that is in its frame or before it
in order. Rows that are not final wait as pending. All final rows of a group are taken together, and
whatever comes later for the group is younger, so a key's rows are processed in their order.
State has the rows whose results are out and that frames of later rows may reach.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from spillway.errors import StateError
from spillway.plan.expression import STATISTICS, ColumnRef
from spillway.state.frame.final_rows import FinalRows
from spillway.state.frame.frames import ordered_rows
from spillway.state.frame.operator import FrameOperator
from spillway.state.frame.statistics import statistics_of
from spillway.state.orders import Orders, Report
from spillway.state.rows import (
    Int64Array,
    Pending,
    PendingReader,
    PendingWriter,
    SortedRows,
    concat,
    group_of,
)
from spillway.state.step import (
    Intake,
    Outlet,
    ParkedInput,
    Phases,
    StateView,
    Task,
    TaskAttempt,
    nonzero,
    result_writer,
    step_report,
)


class FrameStep:
    def __init__(
        self, orders: Orders, operator: FrameOperator, attempt: TaskAttempt, outlet: Outlet | None = None
    ) -> None:
        self._orders = orders
        self._operator = operator
        self._task = task = Task(orders, operator, attempt)
        self._phases = phases = Phases()
        self._state = state = StateView(task, phases)
        self._parked = ParkedInput(task)
        self._results = result_writer(task, outlet, state.meter)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch with input."""
        state, phases = self._state, self._phases
        state.open()
        intake = Intake(self._task, self._orders.limits, state.meter, self._parked, (), batches)
        early = self._parked.writer("early", 0)
        served_rows = np.zeros(self._operator.groups, dtype=np.int64)
        waiting = self._rounds(intake, early, served_rows)
        with phases("park"):
            pending = [*waiting, *early.close(), *self._parked.close()]
        with phases("write"):
            files = self._results.close()
            state.meter.sample()
        state.receive_groups()
        report = step_report(
            self._task,
            state,
            self._results,
            phases,
            files=files,
            pending=pending,
            probed_rows=int(served_rows.sum()),
            intake=intake,
        )
        return replace(report, served_rows=nonzero(served_rows))

    def collect(self, batches: Iterable[pa.RecordBatch]) -> Report:  # noqa: ARG002
        """Never: statistics need all rows of a group together, as they come."""
        raise StateError("rows of a statistics view cannot be collected for a clean-up")

    def clean(self) -> Report:
        """No group is ever split, so there is nothing to clean up."""
        self._state.free()
        pending = (*self._orders.pending, *self._orders.suspended_pending)
        return step_report(
            self._task, self._state, self._results, self._phases, files={}, pending=pending, probed_rows=0
        )

    def _rounds(self, intake: Intake, early: PendingWriter, served_rows: Int64Array) -> list[Pending]:
        """Process the final rows, as many groups at a time as memory allows; returns what is left to wait.

        `served_rows` counts by group the rows whose results were produced; few of them stay in state.
        """
        orders, limits, state = self._orders, self._orders.limits, self._state
        groups = self._operator.groups
        ripe = [entry for entry in orders.pending if orders.ending or entry.has_final(orders.watermark)]
        waiting = [entry for entry in orders.pending if entry not in ripe]
        rows_left = min(limits.rows, limits.results)
        must_advance = orders.advances
        for number in range(groups):
            with self._phases("receive"):
                others = self._parked.writer(f"rest{number}", 0)
                final = FinalRows(groups, rows_left, limits.round_bytes, others)
                for entry in ripe:
                    _, rows = PendingReader(self._task.storage, groups).read(entry, entry.rows)
                    final.add(self._final(rows, early))
                for (rows,) in intake.segments():
                    final.add(self._final(rows, early))
                ripe = others.close()
                delta = final.gathered()
                state.meter.sample()
            if delta is not None:
                with self._phases("compute"):
                    self._compute(delta)
                served_rows += np.bincount(group_of(delta.hashes, groups), minlength=groups)
                rows_left -= delta.rows
                must_advance = False
            if not ripe or rows_left <= 0 or not (must_advance or state.has_room):
                break
        return [*ripe, *waiting]

    def _final(self, rows: SortedRows, early: PendingWriter) -> SortedRows:
        """The final ones of the rows; the others are parked."""
        if self._orders.ending or not rows.rows:
            return rows
        watermark = self._orders.watermark
        times = self._times(rows)
        final = times < watermark if watermark is not None else np.zeros(rows.rows, dtype=np.bool_)
        if final.all():
            return rows
        early.write(rows.take(np.flatnonzero(~final)))
        return rows.take(np.flatnonzero(final))

    def _compute(self, delta: SortedRows) -> None:
        operator, limits = self._operator, self._orders.limits
        tail = self._tail(delta)
        columns = concat([tail.columns, delta.columns.select(list(range(operator.kept)))])
        hashes = np.concatenate([tail.hashes, delta.hashes])
        ordered = ordered_rows(hashes, columns, operator.key_columns, operator.time, operator.order)
        at = np.flatnonzero(ordered.rows >= tail.rows)
        statistics = statistics_of(operator.statistics, columns, ordered, at, operator.statistic_labels)
        rows = delta.take(ordered.rows[at] - tail.rows)
        self._state.meter.sample()
        for start in range(0, rows.rows, limits.chunk_rows):
            size = min(limits.chunk_rows, rows.rows - start)
            piece = rows.columns.slice(start, size)
            found = [values.slice(start, size) for values in statistics]
            self._results.write_rows(
                rows.hashes[start : start + size],
                operator.outputs,
                partial(_column, piece, found),
            )
            self._state.meter.sample()
        since = operator.needed_since(self._orders.watermark)
        stays = ordered.needed(operator.kept_rows, since)[at]
        self._keep(rows.take(np.flatnonzero(stays)))

    def _keep(self, rows: SortedRows) -> None:
        """Rows whose results are out become state."""
        if rows.rows:
            columns = rows.columns.select(list(range(self._operator.kept)))
            self._state.add(0, SortedRows(rows.hashes, columns))
            self._state.persist()

    def _tail(self, delta: SortedRows) -> SortedRows:
        """The state rows of the keys of the delta, as far as its frames may reach them."""
        groups, operator = self._operator.groups, self._operator
        needles = np.unique(delta.hashes)
        since = None if operator.kept_rows else operator.needed_since(int(self._times(delta).min()))
        parts = []
        for segment in self._state.segments[0]:
            rows, _ = segment.matches(needles, groups)
            if since is not None:
                rows = rows[self._times(segment)[rows] >= since]
            if len(rows):
                parts.append(segment.take(rows))
        if not parts:
            nothing = delta.columns.select(list(range(operator.kept))).slice(0, 0)
            return SortedRows(np.empty(0, dtype=np.int64), nothing)
        return SortedRows(
            np.concatenate([part.hashes for part in parts]), concat([part.columns for part in parts])
        )

    def _times(self, rows: SortedRows) -> Int64Array:
        return np.asarray(rows.columns.column(self._operator.time).to_numpy(), dtype=np.int64)


def _column(rows: pa.RecordBatch, statistics: list[pa.Array], ref: ColumnRef) -> pa.Array:
    return statistics[ref.column] if ref.input == STATISTICS else rows.column(ref.column)
