"""Productivity by recent results, older epochs weighing less: for streams whose behaviour changes."""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def recent_history(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    order = sorted(
        snapshot.groups, key=lambda one: (one.recent_results / max(1, one.bytes), -one.bytes, one.group)
    )
    return take_until(order, snapshot)
