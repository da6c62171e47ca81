"""The step that runs an operator of each kind. A new kind is a package beside `join`, and a line here."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

from spillway.state.frame import FrameOperator, FrameStep
from spillway.state.join import JoinOperator, JoinStep
from spillway.state.orders import Orders, Report
from spillway.state.select import SelectOperator, SelectStep
from spillway.state.step import Operator, Outlet, TaskAttempt


class OperatorStep(Protocol):
    """One operator's part of one epoch on one processor."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch with input."""

    def collect(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch whose rows are only written."""

    def clean(self) -> Report:
        """A clean-up epoch, which has none."""


StepMaker = Callable[[Orders, Any, TaskAttempt, Outlet | None], OperatorStep]

_STEPS: Mapping[str, StepMaker] = MappingProxyType(
    {JoinOperator.kind: JoinStep, FrameOperator.kind: FrameStep, SelectOperator.kind: SelectStep}
)


def step_of(orders: Orders, operator: Operator, attempt: TaskAttempt, outlet: Outlet | None) -> OperatorStep:
    return _STEPS[operator.kind](orders, operator, attempt, outlet)
