"""Productivity of the whole tree, where a group also counts for what joins above it keep of its rows.

The default for trees. Of two groups with equal results and bytes, the one with more bytes kept by joins above
goes first. What is kept above counts only in part, because it is also state of the groups that hold it, which
may be spilled themselves. The part was found by search, together with how much a spill frees (figures 7.13,
7.16, 7.17).
"""

from random import Random

from spillway.policy.spill.snapshot import GroupStatistics, SpillSnapshot, take_until

INTER_WEIGHT = 0.2
"""What a byte that joins above keep counts for, against a byte of the group itself."""


def penalised(snapshot: SpillSnapshot, inter_weight: float) -> list[GroupStatistics]:
    """The groups by results per byte, with this part of the bytes that joins above keep."""

    def productivity(group: GroupStatistics) -> float:
        return group.outputs / max(1.0, group.bytes + inter_weight * group.inter_bytes)

    return sorted(snapshot.groups, key=lambda group: (productivity(group), -group.bytes, group.group))


def global_output_penalty(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    return take_until(penalised(snapshot, INTER_WEIGHT), snapshot)
