"""Flux's balance of load (UCB/CSD-2-1205, 5.3): utilisation is equalised with as few moves as possible.

In each round processors are paired by utilisation, and in each pair the busiest group of the donor moves
that brings the two closer, assuming that groups keep their rows and processors their speed. Besides the
paper's test the receiver must end up less utilised than the donor was: between processors of unequal speed
the gap can shrink while the maximum grows, and then groups would wander. And a donor keeps its last group
with rows: the speed of an emptied processor is forgotten, and a slow one would be tried again and again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from spillway.errors import JobError
from spillway.policy.placement.rounds import RoundParameters, pairs, round_is_over
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import NOTHING, Move, Suggestions, move_of


@dataclass(frozen=True, slots=True)
class FluxLoadParameters(RoundParameters):
    utilisation_threshold: float = 0.9
    """A receiver busier than this gets nothing (th_util, 5.4)."""

    def __post_init__(self) -> None:
        RoundParameters.__post_init__(self)
        if not 0 < self.utilisation_threshold <= 1:
            raise JobError(
                f"[run.policy] utilisation_threshold = {self.utilisation_threshold}: "
                "must be above 0 and at most 1"
            )


def flux_load(snapshot: PlacementSnapshot, parameters: FluxLoadParameters) -> Suggestions:
    """Whatever room the receiver has: the policy is for processors with enough memory."""
    return balanced_load(snapshot, parameters, lambda _group, _receiver: True)


def balanced_load(
    snapshot: PlacementSnapshot,
    parameters: FluxLoadParameters,
    fits: Callable[[PlacedGroup, ProcessorStatistics], bool],
) -> Suggestions:
    if len(snapshot.processors) < 2 or not round_is_over(snapshot, parameters):
        return NOTHING
    average = sum(processor.utilisation for processor in snapshot.processors) / len(snapshot.processors)
    order = sorted(snapshot.processors, key=lambda processor: (-processor.utilisation, processor.processor))
    moves: list[Move] = []
    for donor, receiver in pairs(order):
        if (
            donor.utilisation <= average
            or donor.utilisation < parameters.imbalance_threshold * receiver.utilisation
            or receiver.utilisation > parameters.utilisation_threshold
        ):
            break
        chosen = _busiest_that_helps(snapshot, donor, receiver, fits)
        if chosen is not None:
            reason = f"load: utilisation {donor.utilisation:.2f} against {receiver.utilisation:.2f}"
            moves.append(move_of((chosen,), donor.processor, receiver.processor, reason))
    return Suggestions(tuple(moves))


def _busiest_that_helps(
    snapshot: PlacementSnapshot,
    donor: ProcessorStatistics,
    receiver: ProcessorStatistics,
    fits: Callable[[PlacedGroup, ProcessorStatistics], bool],
) -> PlacedGroup | None:
    busy = [group for group in snapshot.groups_of(donor.processor) if group.sampled_rows]
    if len(busy) < 2:
        return None
    leaving = snapshot.seconds_per_row(donor.processor) / donor.span_seconds
    coming = snapshot.seconds_per_row(receiver.processor) / (receiver.span_seconds or donor.span_seconds)
    if not any(group.sampled_rows for group in snapshot.groups_of(receiver.processor)):
        coming = max(coming, leaving)  # its speed is unknown
    movable = (group for group in busy if group.movable)
    for group in sorted(movable, key=lambda group: (-group.sampled_rows, group.bytes, group.group)):
        after_donor = donor.utilisation - group.sampled_rows * leaving
        after_receiver = receiver.utilisation + group.sampled_rows * coming
        closer = abs(after_donor - after_receiver) < donor.utilisation - receiver.utilisation
        if closer and after_receiver < min(1.0, donor.utilisation) and fits(group, receiver):
            return group
    return None
