"""As `global-output-penalty-paper`, but groups near the results weigh more: they are cheaper to clean up.

The clean-up of a low group sends rows through all joins above it. So a group counts as if it were larger, the
nearer it is to the results; by how much is a guess that trades results at run time for time at the end.
"""

from random import Random

from spillway.policy.spill.snapshot import GroupStatistics, SpillSnapshot, take_until

LEVEL_WEIGHT = 0.5
"""How much larger a group counts for each level that it is above the lowest."""


def global_output_cleanup(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    lowest = max((group.height for group in snapshot.groups), default=0)

    def productivity(group: GroupStatistics) -> float:
        weight = 1.0 + LEVEL_WEIGHT * (lowest - group.height)
        return group.outputs / max(1.0, weight * (group.bytes + group.inter_bytes))

    order = sorted(snapshot.groups, key=lambda group: (productivity(group), -group.bytes, group.group))
    return take_until(order, snapshot)
