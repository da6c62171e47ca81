"""Which processor has which group: one pure policy per file, by name.

Contract: a policy is a function of one `PlacementSnapshot` and its parameters; it only suggests. Start with
`snapshot` and `registry`. To add a policy: a file with its function, and its line in `registry`.
"""

from spillway.policy.placement.need import Progress
from spillway.policy.placement.registry import (
    NO_PLACEMENT,
    PLACEMENT_POLICIES,
    PlacementPolicy,
    placement_policy,
)
from spillway.policy.placement.rounds import RoundParameters, next_collection, round_is_over
from spillway.policy.placement.snapshot import (
    LOAD_SIGNALS,
    NEVER,
    PROCESSOR,
    WALL,
    PlacedGroup,
    PlacementSnapshot,
    ProcessorStatistics,
)
from spillway.policy.placement.spread import spread_groups
from spillway.policy.placement.stay import StayParameters
from spillway.policy.placement.suggestion import ForcedSpill, Move, Suggestions

__all__ = [
    "LOAD_SIGNALS",
    "NEVER",
    "NO_PLACEMENT",
    "PLACEMENT_POLICIES",
    "PROCESSOR",
    "WALL",
    "ForcedSpill",
    "Move",
    "PlacedGroup",
    "PlacementPolicy",
    "PlacementSnapshot",
    "ProcessorStatistics",
    "Progress",
    "RoundParameters",
    "StayParameters",
    "Suggestions",
    "next_collection",
    "placement_policy",
    "round_is_over",
    "spread_groups",
]
