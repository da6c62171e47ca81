"""Which groups of a processor to spill: one pure policy per file, by name."""

from spillway.policy.spill.registry import NO_SPILL, SPILL_POLICIES, default_spill, default_spill_share
from spillway.policy.spill.snapshot import GroupStatistics, SpillPolicy, SpillSnapshot

__all__ = [
    "NO_SPILL",
    "SPILL_POLICIES",
    "GroupStatistics",
    "SpillPolicy",
    "SpillSnapshot",
    "default_spill",
    "default_spill_share",
]
