"""Productivity of the whole tree, where a group also counts for what joins above it keep of its rows.

The default for trees. Of two groups with equal results, the one goes first whose rows fill more memory
further up.
"""

from random import Random

from spillway.policy.spill.global_output import by_output
from spillway.policy.spill.snapshot import SpillSnapshot, take_relieving


def global_output_penalty(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    order = sorted(
        snapshot.groups,
        key=lambda one: (one.outputs / max(1, one.bytes + one.inter_bytes), -one.bytes, one.group),
    )
    return take_relieving(order, by_output(snapshot), snapshot)
