"""Pairwise memory balance (WPI-CS-TR-05-04, 5.1; Liu's dissertation, 6.2).

When the least filled processor has less than `relocation_threshold` of the most filled one's state, half of
the difference moves from the most to the least, productive groups first: what moves stays in memory, and is
what is worth it. One pair at a time; repeated, that converges, because every move makes the sum of squares
smaller. With unequal budgets the amount is the one after which both are equally full.

Known limit: groups move whole, so a processor all of whose groups are larger than the difference keeps them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spillway.errors import JobError
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import NOTHING, Move, Suggestions, move_of

GroupOrder = Callable[[PlacedGroup], tuple[float, ...]]
"""Sort key: which groups move first."""


@dataclass(frozen=True, slots=True)
class PairwiseParameters:
    relocation_threshold: float = 0.8
    """Least over most filled, below which a relocation begins (theta_r, figure 6.15)."""
    minimum_span_seconds: float = 45.0
    """Between two relocations (tau_m, figure 6.15)."""
    minimum_difference_bytes: int = 64 << 10
    """Ours: below this difference between two processors the ratio says nothing."""

    def __post_init__(self) -> None:
        if not 0 < self.relocation_threshold <= 1:
            raise JobError(
                f"[run.policy] relocation_threshold = {self.relocation_threshold}: "
                "must be above 0 and at most 1"
            )
        for name in ("minimum_span_seconds", "minimum_difference_bytes"):
            if getattr(self, name) < 0:
                raise JobError(f"[run.policy] {name} = {getattr(self, name)}: must not be negative")


def pairwise_memory(snapshot: PlacementSnapshot, parameters: PairwiseParameters) -> Suggestions:
    if not span_is_over(snapshot, parameters.minimum_span_seconds):
        return NOTHING
    move = balancing_move(snapshot, parameters, by_productivity)
    return NOTHING if move is None else Suggestions((move,))


def span_is_over(snapshot: PlacementSnapshot, span_seconds: float) -> bool:
    return snapshot.now_seconds - snapshot.adapted_seconds >= span_seconds


def by_productivity(group: PlacedGroup) -> tuple[float, ...]:
    """The most productive first, large ones before small ones; those that cannot be judged yet last."""
    return (not group.mature, -group.productivity, -group.bytes, group.group)


def is_unbalanced(
    least: ProcessorStatistics, most: ProcessorStatistics, parameters: PairwiseParameters
) -> bool:
    difference = most.fill - least.fill
    scale = min(most.capacity, least.capacity)
    return (
        difference * scale > parameters.minimum_difference_bytes
        and least.fill < parameters.relocation_threshold * most.fill
    )


def ends(snapshot: PlacementSnapshot) -> tuple[ProcessorStatistics, ProcessorStatistics] | None:
    """The least and the most filled processor."""
    if len(snapshot.processors) < 2:
        return None
    order = sorted(snapshot.processors, key=lambda processor: (processor.fill, processor.processor))
    return order[0], order[-1]


def balancing_move(
    snapshot: PlacementSnapshot,
    parameters: PairwiseParameters,
    order: GroupOrder,
) -> Move | None:
    """The move between the two ends, if they are far enough apart."""
    pair = ends(snapshot)
    if pair is None or not is_unbalanced(*pair, parameters):
        return None
    least, most = pair
    reason = f"memory: processor {least.processor} has {_share(least, most)} % of processor {most.processor}"
    return levelling_move(snapshot, most, least, order, reason)


def levelling_move(
    snapshot: PlacementSnapshot,
    sender: ProcessorStatistics,
    receiver: ProcessorStatistics,
    order: GroupOrder,
    reason: str,
) -> Move | None:
    """Groups of the sender, in this order, until both are as full as each other."""
    wanted = level_bytes(sender, receiver)
    room = receiver.room_bytes
    groups = sorted(resident_groups(snapshot, sender.processor), key=order)
    chosen = _up_to(groups, min(wanted, room))
    if not chosen:  # all are larger; one helps if the receiver ends up less full than the sender was
        chosen = [group for group in groups if group.bytes <= room and _is_gain(group, sender, receiver)][:1]
    return move_of(chosen, sender.processor, receiver.processor, reason) if chosen else None


def level_bytes(sender: ProcessorStatistics, receiver: ProcessorStatistics) -> float:
    """What has to move for both to be equally full: half of the difference if their budgets are equal."""
    together = sender.capacity + receiver.capacity
    return (sender.fill - receiver.fill) * sender.capacity * receiver.capacity / together


def resident_groups(snapshot: PlacementSnapshot, processor: int) -> list[PlacedGroup]:
    """Groups of a processor that can move now and have state in memory."""
    return [group for group in snapshot.groups_of(processor) if group.movable and group.resident_bytes]


def _up_to(groups: Iterable[PlacedGroup], limit_bytes: float) -> list[PlacedGroup]:
    chosen, taken = [], 0
    for group in groups:
        if taken + group.bytes <= limit_bytes:
            chosen.append(group)
            taken += group.bytes
    return chosen


def _is_gain(group: PlacedGroup, sender: ProcessorStatistics, receiver: ProcessorStatistics) -> bool:
    gap = abs(_fill_with(group, receiver) - _fill_without(group, sender))
    return _fill_with(group, receiver) < sender.fill and gap < sender.fill - receiver.fill


def _fill_with(group: PlacedGroup, processor: ProcessorStatistics) -> float:
    return (processor.resident_bytes + group.bytes) / processor.capacity


def _fill_without(group: PlacedGroup, processor: ProcessorStatistics) -> float:
    return (processor.resident_bytes - group.bytes) / processor.capacity


def _share(least: ProcessorStatistics, most: ProcessorStatistics) -> int:
    return int(100 * least.fill / most.fill)
