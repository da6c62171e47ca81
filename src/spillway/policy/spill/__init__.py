"""Which groups of a processor to spill: one pure policy per file, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from spillway.policy.spill.at_random import at_random
from spillway.policy.spill.least_productive import least_productive
from spillway.policy.spill.least_recent import least_recent
from spillway.policy.spill.most_productive import most_productive
from spillway.policy.spill.recent_history import recent_history
from spillway.policy.spill.snapshot import GroupStatistics, SpillPolicy, SpillSnapshot

NO_SPILL = "none"
SPILL_POLICIES: Mapping[str, SpillPolicy] = MappingProxyType(
    {
        "least-productive": least_productive,
        "most-productive": most_productive,
        "random": at_random,
        "least-recent": least_recent,
        "recent-history": recent_history,
    }
)

__all__ = ["NO_SPILL", "SPILL_POLICIES", "GroupStatistics", "SpillPolicy", "SpillSnapshot"]
