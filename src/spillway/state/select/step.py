"""One processor's part of one epoch of a selection: rows in, rows out, nothing kept.

All rows are taken in as they come, whatever the limits of the epoch: to park them would take as long as to
pass them on. They pass in pieces that are small enough for the limits on memory. So an attempt that is run
again gives the same rows, and between two epochs there is nothing to restore.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from spillway.plan.expression import Columns, evaluate
from spillway.state.orders import NO_BOUND, Limits, Orders, Report
from spillway.state.rows import Int64Array
from spillway.state.select.operator import SelectOperator
from spillway.state.step import (
    HASH_WIRE_COLUMN,
    Outlet,
    Phases,
    StateView,
    Task,
    TaskAttempt,
    column_labels,
    result_writer,
    state_columns,
    step_report,
)

LEAST_ROWS = 16
"""Pieces are not cut below this many rows."""


class SelectStep:
    def __init__(
        self, orders: Orders, operator: SelectOperator, attempt: TaskAttempt, outlet: Outlet | None = None
    ) -> None:
        self._operator = operator
        self._task = task = Task(orders, operator, attempt)
        self._phases = phases = Phases()
        self._state = state = StateView(task, phases)
        self._results = result_writer(task, outlet, state.meter)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch with input."""
        arrived = 0
        with self._phases("select"):
            for piece in self._pieces(batches):
                arrived += piece.num_rows
                self._write(piece)
                self._state.meter.sample()
                del piece  # before the next one is there
        with self._phases("write"):
            files = self._results.close()
            self._state.meter.sample()
        report = step_report(
            self._task, self._state, self._results, self._phases, files=files, pending=(), probed_rows=arrived
        )
        return replace(report, input_rows=arrived)

    def collect(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """The same while operators upstream are cleaned up: no row is kept for later."""
        return self.run(batches)

    def clean(self) -> Report:
        """A clean-up epoch in which no rows come."""
        return self.run(())

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        limits = self._task.orders.limits
        for batch in batches:
            size = _piece_rows(batch, limits)
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)
            del batch

    def _write(self, piece: pa.RecordBatch) -> None:
        operator = self._operator
        hashes: Int64Array = piece.column(HASH_WIRE_COLUMN).to_numpy()
        columns = state_columns(piece, operator.inputs[0])
        if operator.predicate is not None:
            keep = evaluate(operator.predicate, _columns(columns), columns.num_rows, column_labels(operator))
            chosen = np.flatnonzero(keep.fill_null(False))
            hashes, columns = hashes[chosen], columns.take(pa.array(chosen))
        if len(hashes):
            self._results.write_rows(hashes, operator.outputs, _columns(columns))


def _columns(rows: pa.RecordBatch) -> Columns:
    return lambda ref: rows.column(ref.column)


def _piece_rows(batch: pa.RecordBatch, limits: Limits) -> int:
    if limits.chunk_bytes >= NO_BOUND:
        return limits.chunk_rows
    row_bytes: int = max(1, batch.nbytes // max(1, batch.num_rows))
    return min(limits.chunk_rows, max(LEAST_ROWS, limits.chunk_bytes // row_bytes))
