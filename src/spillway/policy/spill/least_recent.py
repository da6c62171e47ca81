"""Inactive groups first, as caches do; when all are active, the least productive.

A group is inactive when no row came for `inactive_epochs`; the longest inactive goes first.
"""

from random import Random

from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def least_recent(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    inactive = sorted(
        (one for one in snapshot.groups if one.idle_epochs >= snapshot.inactive_epochs),
        key=lambda one: (-one.idle_epochs, one.group),
    )
    active = sorted(
        (one for one in snapshot.groups if one.idle_epochs < snapshot.inactive_epochs),
        key=lambda one: (one.productivity, -one.bytes, one.group),
    )
    return take_until([*inactive, *active], snapshot)
