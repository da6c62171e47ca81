"""Spill first the groups that contributed the fewest view results per byte of their own.

For a single join it is the same as `least-productive`.
"""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def global_output(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    order = sorted(
        snapshot.groups, key=lambda group: (group.outputs / max(1, group.bytes), -group.bytes, group.group)
    )
    return take_until(order, snapshot)
