"""Runs one operator's part of an epoch, whatever its kind, and measures it."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

from spillway.state.frame import FrameOperator, FrameStep
from spillway.state.join import JoinOperator, JoinStep
from spillway.state.memory import bound_allocator, give_back
from spillway.state.orders import NO_BOUND, Orders, Report
from spillway.state.step import Allocated, Operator, Outlet, TaskAttempt


class Step(Protocol):
    """One operator's part of one epoch on one processor."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch with input."""

    def clean(self) -> Report:
        """A clean-up epoch, which has none."""


StepMaker = Callable[[Orders, Any, TaskAttempt, Outlet | None], Step]

_STEPS: Mapping[str, StepMaker] = MappingProxyType(
    {JoinOperator.kind: JoinStep, FrameOperator.kind: FrameStep}
)
"""What runs an operator of each kind. A new kind is a package beside `join` and `frame`, and a line here."""


def run_step(
    orders: Orders,
    operator: Operator,
    attempt: TaskAttempt,
    batches: Iterable[pa.RecordBatch],
    outlet: Outlet | None = None,
) -> Report:
    """One operator's part; with an outlet its results are input of another join."""
    started = time.perf_counter()
    round_bytes = orders.limits.round_bytes
    if round_bytes < NO_BOUND:
        bound_allocator(round_bytes // 8)
    allocated = Allocated()
    before = allocated()
    step = _STEPS[operator.kind](orders, operator, attempt, outlet)
    report = step.clean() if orders.clean else step.run(batches)
    del step  # its memory does not stay
    report = _without(report, allocated() - before)
    if round_bytes < NO_BOUND:
        give_back()
    if orders.row_seconds:
        report = _served(report, orders.row_seconds, started)
    return replace(report, wall_seconds=time.perf_counter() - started)


def _without(report: Report, stays_bytes: int) -> Report:
    """The report without what stays allocated when the step is gone: tables of the interpreter that grew.

    Such a table (of interned strings, for example) takes megabytes, and grows once in the life of a process.
    """
    peak = report.peak_bytes - max(0, stays_bytes)
    return replace(report, peak_bytes=max(report.resident_bytes, peak))


def _served(report: Report, row_seconds: float, started: float) -> Report:
    """The report of a processor that is as slow as an experiment says."""
    needed = report.probed_rows * row_seconds
    time.sleep(max(0.0, started + needed - time.perf_counter()))
    return replace(report, busy_seconds=max(report.busy_seconds, needed))
