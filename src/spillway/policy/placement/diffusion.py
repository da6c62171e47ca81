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
    above = {one.processor: one.resident_bytes - average * one.capacity for one in snapshot.processors}
    room = {one.processor: min(-above[one.processor], one.room_bytes) for one in snapshot.processors}
    chosen: dict[tuple[int, int], list[PlacedGroup]] = {}
    for sender in sorted((p for p in above if above[p] > 0), key=lambda p: (-above[p], p)):
        for one in sorted(resident_groups(snapshot, sender), key=by_productivity):
            receiver = max(room, key=lambda p: (room[p], -p))
            if one.bytes <= min(above[sender], room[receiver]):
                chosen.setdefault((sender, receiver), []).append(one)
                above[sender] -= one.bytes
                room[receiver] -= one.bytes
    moves = (
        move_of(groups, sender, receiver, f"memory: towards an average of {_shown(average)}")
        for (sender, receiver), groups in chosen.items()
    )
    return Suggestions(tuple(moves))


def _average_fill(snapshot: PlacementSnapshot) -> float:
    total = sum(one.resident_bytes for one in snapshot.processors)
    return total / sum(one.capacity for one in snapshot.processors)


def _shown(fill: float) -> str:
    """A share of the memory for state; without a limit, bytes."""
    return f"{100 * fill:.0f} %" if fill <= 10 else f"{fill:.0f} bytes"
