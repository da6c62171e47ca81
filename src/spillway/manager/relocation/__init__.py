"""Moving groups between processors while a query runs: decisions, moves in progress, statistics.

Start with `protocol`; the policies are in `policy.placement`.
"""

from spillway.manager.relocation.moves import MoveInProgress, incoming_runs, placed
from spillway.manager.relocation.protocol import (
    Decision,
    Refusal,
    RelocationLimits,
    RelocationManager,
    RelocationStep,
)
from spillway.manager.relocation.statistics import PlacementStatistics, pinned_groups

__all__ = [
    "Decision",
    "MoveInProgress",
    "PlacementStatistics",
    "Refusal",
    "RelocationLimits",
    "RelocationManager",
    "RelocationStep",
    "incoming_runs",
    "pinned_groups",
    "placed",
]
