"""Which groups of a processor to spill: one pure policy per file, by name.

To add one: a file with a function of a `SpillSnapshot`, and its line in `registry`.
"""

from spillway.policy.spill.registry import NO_SPILL, SPILL_POLICIES, default_spill, default_spill_share
from spillway.policy.spill.snapshot import INACTIVE_EPOCHS, GroupStatistics, SpillSnapshot

__all__ = [
    "INACTIVE_EPOCHS",
    "NO_SPILL",
    "SPILL_POLICIES",
    "GroupStatistics",
    "SpillSnapshot",
    "default_spill",
    "default_spill_share",
]
