"""Which groups of a processor to spill: one pure policy per file, by name.

Contract: a policy is a function of one `SpillSnapshot`; it returns groups in the order in which they go,
until enough memory is free (`take_until`). Start with `snapshot` and `registry`. To add a policy: a file
with its function, and its line in `registry`.
"""

from spillway.policy.spill.registry import (
    NO_SPILL,
    SPILL_POLICIES,
    default_ahead_share,
    default_spill,
    default_spill_share,
)
from spillway.policy.spill.snapshot import INACTIVE_EPOCHS, GroupStatistics, SpillSnapshot

__all__ = [
    "INACTIVE_EPOCHS",
    "NO_SPILL",
    "SPILL_POLICIES",
    "GroupStatistics",
    "SpillSnapshot",
    "default_ahead_share",
    "default_spill",
    "default_spill_share",
]
