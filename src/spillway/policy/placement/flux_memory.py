"""Flux's balance of memory (UCB/CSD-2-1205, 6.2): excess capacity is equalised, on disk or not.

Excess capacity is the memory for state less all state of a processor's groups, on disk too: negative when
not all fits. In each round processors are paired by it, and in each pair the largest group of the donor moves
that brings the two closer; groups in memory go before groups on disk, which would bring their clean-up or
their waiting input along. The first pair that is level ends the round: those after it are closer still.
The receiver may be full: it then gives up other state, and what is on disk is evened out. Only a group that
is larger than all of its memory for state does not go there.
"""

from spillway.policy.placement.rounds import RoundParameters, pairs, round_is_over
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import NOTHING, Move, Suggestions, move_of


def flux_memory(snapshot: PlacementSnapshot, parameters: RoundParameters) -> Suggestions:
    if len(snapshot.processors) < 2 or not round_is_over(snapshot, parameters):
        return NOTHING
    state = {
        processor.processor: _state_bytes(snapshot, processor.processor) for processor in snapshot.processors
    }
    excess = {
        processor.processor: _limit(processor) - state[processor.processor]
        for processor in snapshot.processors
    }
    average = sum(excess.values()) / len(excess)
    moves: list[Move] = []
    for donor, receiver in pairs(
        sorted(snapshot.processors, key=lambda processor: _order(processor, excess))
    ):
        fill = state[donor.processor] / donor.capacity
        least = state[receiver.processor] / receiver.capacity
        if excess[donor.processor] >= average or fill < parameters.imbalance_threshold * least:
            break
        chosen = _largest_that_helps(snapshot, donor, receiver, state)
        if chosen is not None:
            reason = f"memory: excess capacity {excess[donor.processor]} against {excess[receiver.processor]}"
            full = chosen.resident_bytes > receiver.room_bytes
            moves.append(move_of((chosen,), donor.processor, receiver.processor, reason, makes_room=full))
    return Suggestions(tuple(moves))


def _largest_that_helps(
    snapshot: PlacementSnapshot,
    donor: ProcessorStatistics,
    receiver: ProcessorStatistics,
    state: dict[int, int],
) -> PlacedGroup | None:
    """A group that brings the two closer, in excess capacity and, with unequal budgets, in fill as well."""
    sent, got = state[donor.processor], state[receiver.processor]
    excess_gap = (_limit(receiver) - got) - (_limit(donor) - sent)
    fill_gap = sent / donor.capacity - got / receiver.capacity
    groups = (group for group in snapshot.groups_of(donor.processor) if group.movable and group.total_bytes)
    for group in sorted(groups, key=lambda group: (group.on_disk, -group.total_bytes, group.group)):
        size = group.total_bytes
        filled = (got + size) / receiver.capacity
        closer = size < excess_gap and abs(filled - (sent - size) / donor.capacity) < fill_gap
        fits = receiver.state_limit_bytes is None or group.resident_bytes <= receiver.state_limit_bytes
        if closer and filled < sent / donor.capacity and fits:
            return group
    return None


def _state_bytes(snapshot: PlacementSnapshot, processor: int) -> int:
    return sum(group.total_bytes for group in snapshot.groups_of(processor))


def _limit(processor: ProcessorStatistics) -> int:
    return 0 if processor.state_limit_bytes is None else processor.state_limit_bytes


def _order(processor: ProcessorStatistics, excess: dict[int, int]) -> tuple[int, int]:
    return excess[processor.processor], processor.processor
