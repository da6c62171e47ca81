"""Which processor has which group: one pure policy per file, by name. The manager decides what is done."""

from spillway.policy.placement.registry import (
    NO_PLACEMENT,
    PLACEMENT_POLICIES,
    PlacementParameters,
    PlacementPolicy,
    placement_policy,
)
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import NOTHING, ForcedSpill, Move, Suggestions

__all__ = [
    "NOTHING",
    "NO_PLACEMENT",
    "PLACEMENT_POLICIES",
    "ForcedSpill",
    "Move",
    "PlacedGroup",
    "PlacementParameters",
    "PlacementPolicy",
    "PlacementSnapshot",
    "ProcessorStatistics",
    "Suggestions",
    "placement_policy",
]
