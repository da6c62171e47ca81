"""Lazy-disk (WPI-CS-TR-05-04, section 6; Liu's dissertation, 6.3): disk only when the cluster is full.

Memory is balanced pairwise. Processors spill by themselves when they are beyond their memory for state, but
the two do not happen at once: a processor that moves state away, and is within its memory after that, does
not spill until then. A processor that is beyond its memory sends state to one that has room even if the two
are nearly level. Groups that have nothing on disk move first; so clean-up stays where it is.
"""

from dataclasses import dataclass

from spillway.errors import JobError
from spillway.policy.placement.pairwise_memory import (
    PairwiseParameters,
    balancing_move,
    by_productivity,
    ends,
    levelling_move,
    span_is_over,
)
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import Move, Suggestions


@dataclass(frozen=True, slots=True)
class LazyDiskParameters(PairwiseParameters):
    overflow_share: float = 0.2
    """Ours: how much of the memory that is not for state may hold state for as long as a move relieves it."""

    def __post_init__(self) -> None:
        PairwiseParameters.__post_init__(self)
        if not 0 <= self.overflow_share <= 1:
            raise JobError(f"[run.policy] overflow_share = {self.overflow_share}: must be between 0 and 1")


def lazy_disk(snapshot: PlacementSnapshot, parameters: LazyDiskParameters) -> Suggestions:
    move = None
    if span_is_over(snapshot, parameters.minimum_span_seconds):
        move = balancing_move(snapshot, parameters, in_memory_first) or _relieving_move(snapshot)
    moves = () if move is None else (move,)
    relieved = (
        processor
        for processor in snapshot.processors
        if _is_relieved(processor, move, parameters.overflow_share)
    )
    return Suggestions(moves, relieved=frozenset(processor.processor for processor in relieved))


def in_memory_first(group: PlacedGroup) -> tuple[float, ...]:
    return (group.on_disk, *by_productivity(group))


def _relieving_move(snapshot: PlacementSnapshot) -> Move | None:
    pair = ends(snapshot)
    if pair is None:
        return None
    least, most = pair
    if not 0 < most.overflow_bytes <= least.room_bytes:
        return None
    reason = f"overflow: processor {least.processor} has room for {most.overflow_bytes} bytes"
    return levelling_move(snapshot, most, least, in_memory_first, reason)


def _is_relieved(processor: ProcessorStatistics, move: Move | None, overflow_share: float) -> bool:
    if not processor.overflow_bytes or processor.state_limit_bytes is None or processor.memory_bytes is None:
        return False
    leaving = processor.outgoing_bytes
    if move is not None and move.sender == processor.processor:
        leaving += move.bytes
    working = (processor.memory_bytes - processor.state_limit_bytes) * overflow_share
    return processor.overflow_bytes <= min(leaving, working)
