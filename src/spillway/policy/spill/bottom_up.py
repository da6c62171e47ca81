"""Groups of the lowest joins of a tree first, at random: less is then kept further up.

It spills least often, and yet gives few results: what a low group takes part in is never looked at.
"""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def bottom_up(snapshot: SpillSnapshot, random: Random) -> tuple[int, ...]:
    order = sorted(snapshot.groups, key=lambda group: group.group)
    random.shuffle(order)
    order.sort(key=lambda group: -group.height)
    return take_until(order, snapshot)
