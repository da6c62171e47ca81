"""Random victims, for comparison, and for measuring how much to spill apart from what."""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def at_random(snapshot: SpillSnapshot, random: Random) -> tuple[int, ...]:
    order = sorted(snapshot.groups, key=lambda group: group.group)
    random.shuffle(order)
    return take_until(order, snapshot)
