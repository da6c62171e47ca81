"""What a snapshot would become if suggestions were carried out and the load stayed as it is.

The assumption of all policies here: groups keep their rows and their size, processors keep their speed. It is
what their properties (no move to a fuller processor, no imbalance made larger, an end) are stated about.
"""

from dataclasses import replace

from spillway.model.groups import members
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import Suggestions


def after(snapshot: PlacementSnapshot, suggestions: Suggestions, now_seconds: float) -> PlacementSnapshot:
    """The snapshot at `now_seconds`, with all moves and forced spills done at the old moment."""
    placement = {group: move.receiver for move in suggestions.moves for group in members(move.groups)}
    spilled = {group for spill in suggestions.spills for group in members(spill.groups)}
    groups = tuple(
        replace(
            _spilled(one) if one.group in spilled else one, processor=placement.get(one.group, one.processor)
        )
        for one in snapshot.groups
    )
    involved = {one.processor for one in suggestions.spills}
    involved |= {end for move in suggestions.moves for end in (move.sender, move.receiver)}
    moved = replace(snapshot, now_seconds=now_seconds, epoch=snapshot.epoch + 1, groups=groups)
    processors = tuple(
        _processor_after(snapshot, moved, one, one.processor in involved) for one in snapshot.processors
    )
    forced = snapshot.forced_bytes + sum(spill.bytes for spill in suggestions.spills)
    return replace(moved, processors=processors, forced_bytes=forced)


def _processor_after(
    before: PlacementSnapshot, moved: PlacementSnapshot, one: ProcessorStatistics, involved: bool
) -> ProcessorStatistics:
    grown = _resident_bytes(moved, one.processor) - _resident_bytes(before, one.processor)
    rows = _sampled_rows(moved, one.processor) - _sampled_rows(before, one.processor)
    return replace(
        one,
        resident_bytes=one.resident_bytes + grown,
        busy_seconds=max(0.0, one.busy_seconds + rows * before.seconds_per_row(one.processor)),
        adapted_seconds=before.now_seconds if involved else one.adapted_seconds,
    )


def _spilled(one: PlacedGroup) -> PlacedGroup:
    return replace(one, bytes=0, rows=0, results=0, spilled_bytes=one.total_bytes, mature=False)


def _resident_bytes(snapshot: PlacementSnapshot, processor: int) -> int:
    return sum(one.resident_bytes for one in snapshot.groups_of(processor))


def _sampled_rows(snapshot: PlacementSnapshot, processor: int) -> int:
    return sum(one.sampled_rows for one in snapshot.groups_of(processor))
