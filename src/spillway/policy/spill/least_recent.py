"""Inactive groups first, as caches do; when all are active, the least productive.

A group is inactive when no row came for `inactive_epochs`; the longest inactive goes first.
"""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def least_recent(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    inactive = sorted(
        (group for group in snapshot.groups if group.idle_epochs >= snapshot.inactive_epochs),
        key=lambda group: (-group.idle_epochs, group.group),
    )
    active = sorted(
        (group for group in snapshot.groups if group.idle_epochs < snapshot.inactive_epochs),
        key=lambda group: (group.productivity, -group.bytes, group.group),
    )
    return take_until([*inactive, *active], snapshot)
