"""Moving groups between processors while a query runs: decisions, moves in progress, statistics.

Contract: a relocation is suggested, then refused or begun, loaded, and completed or abandoned; only
`RelocationManager` changes its state. A move is noted when it is accepted; its progress counts only after
the epoch is committed. Start with `protocol`; `safety` has the reasons of refusals; the policies are in
`policy.placement`.
"""

from spillway.manager.relocation.decision import Decision, MovesStep, Refusal, Relocation
from spillway.manager.relocation.moves import Load, MoveInProgress
from spillway.manager.relocation.protocol import RelocationLimits, RelocationManager
from spillway.manager.relocation.statistics import PlacementStatistics, Sampling

__all__ = [
    "Decision",
    "Load",
    "MoveInProgress",
    "MovesStep",
    "PlacementStatistics",
    "Refusal",
    "Relocation",
    "RelocationLimits",
    "RelocationManager",
    "Sampling",
]
