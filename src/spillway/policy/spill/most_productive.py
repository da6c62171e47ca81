"""The opposite of least productive, for comparison only."""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def most_productive(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    order = sorted(snapshot.groups, key=lambda group: (-group.productivity, -group.bytes, group.group))
    return take_until(order, snapshot)
