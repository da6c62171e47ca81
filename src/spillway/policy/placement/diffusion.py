"""Diffusion (Liu's dissertation, 14.2): all processors are brought to the average in one adaptation.

With the restriction named there: state moves only from processors above the average to processors below it.
None of them crosses the average, so no imbalance grows. Compared with pairwise balance it levels out at
once, and disturbs more processors; trigger and span are the same.
"""

from spillway.policy.placement.pairwise_memory import (
    PairwiseParameters,
    by_productivity,
    ends,
    is_unbalanced,
    resident_groups,
    span_is_over,
)
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot
from spillway.policy.placement.suggestion import NOTHING, Suggestions, move_of


def diffusion(snapshot: PlacementSnapshot, parameters: PairwiseParameters) -> Suggestions:
    if not span_is_over(snapshot, parameters.minimum_span_seconds):
        return NOTHING
    pair = ends(snapshot)
    if pair is None or not is_unbalanced(*pair, parameters):
        return NOTHING
    average = _average_fill(snapshot)
    above = {
        processor.processor: processor.resident_bytes - average * processor.capacity
        for processor in snapshot.processors
    }
    room = {
        processor.processor: min(-above[processor.processor], processor.room_bytes)
        for processor in snapshot.processors
    }
    chosen: dict[tuple[int, int], list[PlacedGroup]] = {}
    for sender in sorted((p for p in above if above[p] > 0), key=lambda p: (-above[p], p)):
        for group in sorted(resident_groups(snapshot, sender), key=by_productivity):
            receiver = max(room, key=lambda p: (room[p], -p))
            if group.bytes <= min(above[sender], room[receiver]):
                chosen.setdefault((sender, receiver), []).append(group)
                above[sender] -= group.bytes
                room[receiver] -= group.bytes
    moves = (
        move_of(groups, sender, receiver, f"memory: towards an average of {_shown(average)}")
        for (sender, receiver), groups in chosen.items()
    )
    return Suggestions(tuple(moves))


def _average_fill(snapshot: PlacementSnapshot) -> float:
    total = sum(processor.resident_bytes for processor in snapshot.processors)
    return total / sum(processor.capacity for processor in snapshot.processors)


def _shown(fill: float) -> str:
    """A share of the memory for state; without a limit, bytes."""
    return f"{100 * fill:.0f} %" if fill <= 10 else f"{fill:.0f} bytes"
