"""Snapshots of a cluster for placement policies, from the groups of each processor.

Groups are numbered consecutively across processors. A processor holds what its groups hold, unless it says
otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics

MB = 1 << 20
Fields = Mapping[str, Any]


def placement_snapshot(
    groups: Sequence[Sequence[Fields]], processors: Sequence[Fields], now: float, epoch: int, **fields: Any
) -> PlacementSnapshot:
    """Fields of the groups of each processor, fields of each processor, and those of the snapshot."""
    placed = [(owner, of) for owner, mine in enumerate(groups) for of in mine]
    made = tuple(PlacedGroup(group, owner, **of) for group, (owner, of) in enumerate(placed))
    resident = [sum(group["bytes"] for group in mine) for mine in groups]
    statistics = tuple(
        ProcessorStatistics(number, **{"resident_bytes": resident[number], **of})
        for number, of in enumerate(processors)
    )
    return PlacementSnapshot(now, epoch, statistics, made, **fields)


def with_group(snapshot: PlacementSnapshot, number: int, **fields: Any) -> PlacementSnapshot:
    groups = (replace(group, **fields) if group.group == number else group for group in snapshot.groups)
    return replace(snapshot, groups=tuple(groups))


def with_processor(snapshot: PlacementSnapshot, number: int, **fields: Any) -> PlacementSnapshot:
    processors = (
        replace(processor, **fields) if processor.processor == number else processor
        for processor in snapshot.processors
    )
    return replace(snapshot, processors=tuple(processors))
