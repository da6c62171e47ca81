"""The parts of an epoch's work that all operators share: reading input, state, runs, results, memory.

Contract: an attempt only creates files under names of its own, so it may be repeated. Start with `task`.
"""

from spillway.state.step.intake import Deltas, Intake
from spillway.state.step.meter import Allocated
from spillway.state.step.operator import HASH_WIRE_COLUMN, TAG_COLUMN, Edge, Merges, Operator, WireInput
from spillway.state.step.results import Outlet, Writer, Written, output_arrays
from spillway.state.step.tally import typical_error
from spillway.state.step.task import Attempt, Clock, TaskAttempt, nonzero

__all__ = [
    "HASH_WIRE_COLUMN",
    "TAG_COLUMN",
    "Allocated",
    "Attempt",
    "Clock",
    "Deltas",
    "Edge",
    "Intake",
    "Merges",
    "Operator",
    "Outlet",
    "TaskAttempt",
    "WireInput",
    "Writer",
    "Written",
    "nonzero",
    "output_arrays",
    "typical_error",
]
