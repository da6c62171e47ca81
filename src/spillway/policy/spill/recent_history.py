"""Productivity by recent results, older epochs weighing less: for streams whose behaviour changes."""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def recent_history(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    order = sorted(
        snapshot.groups,
        key=lambda group: (group.recent_results / max(1, group.bytes), -group.bytes, group.group),
    )
    return take_until(order, snapshot)
