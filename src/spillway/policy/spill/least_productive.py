"""Throughput-oriented spill (the default): the groups with the fewest results per byte go first.

What stays in memory is what is most likely to produce results as further input comes.
"""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def least_productive(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    order = sorted(snapshot.groups, key=lambda group: (group.productivity, -group.bytes, group.group))
    return take_until(order, snapshot)
