"""The parts that a step of any operator is made of: task, state, input, results, and what is counted.

Contract: an attempt only creates files under names of its own, so it may be repeated. A step composes the
parts; `join/step` shows how. Start with `task`, then `state_view` and `intake`.
"""

from spillway.state.step.collection import Collection
from spillway.state.step.intake import Deltas, Intake, state_columns
from spillway.state.step.lineage import Lineage, typical_error
from spillway.state.step.meter import Allocated
from spillway.state.step.operator import (
    HASH_WIRE_COLUMN,
    TAG_COLUMN,
    Merges,
    Operator,
    WireInput,
    column_labels,
)
from spillway.state.step.parked_input import ParkedInput
from spillway.state.step.phases import Phases
from spillway.state.step.reporting import step_report
from spillway.state.step.result_files import ResultFiles
from spillway.state.step.results import (
    ONLY_RESULT,
    Outlet,
    Writer,
    Written,
    output_arrays,
    result_writer,
)
from spillway.state.step.retention import Retention, WindowRetention
from spillway.state.step.state_view import StateView
from spillway.state.step.tally import lineage_counters, nonzero
from spillway.state.step.task import Task, TaskAttempt

__all__ = [
    "HASH_WIRE_COLUMN",
    "ONLY_RESULT",
    "TAG_COLUMN",
    "Allocated",
    "Collection",
    "Deltas",
    "Intake",
    "Lineage",
    "Merges",
    "Operator",
    "Outlet",
    "ParkedInput",
    "Phases",
    "ResultFiles",
    "Retention",
    "StateView",
    "Task",
    "TaskAttempt",
    "WindowRetention",
    "WireInput",
    "Writer",
    "Written",
    "column_labels",
    "lineage_counters",
    "nonzero",
    "output_arrays",
    "result_writer",
    "state_columns",
    "step_report",
    "typical_error",
]
