"""Rounds of Flux (UCB/CSD-2-1205, 5.3): collect statistics, move, collect for as long as the move took.

So even after poor decisions at most half of the time goes to moving. Processors are paired from the ends of
an order: the most loaded with the least, the second with the second last; each is in one pair per round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from spillway.errors import JobError
from spillway.policy.placement.snapshot import PlacementSnapshot

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RoundParameters:
    minimum_collection_seconds: float = 0.25
    """Shortest time of collecting (delta_min): from here on moving paid off under skew (figure 9)."""
    imbalance_threshold: float = 1.2
    """Donor over receiver, below which a pair is left alone (th_imb, 5.4)."""

    def __post_init__(self) -> None:
        if self.minimum_collection_seconds < 0:
            raise JobError(
                f"[run.policy] minimum_collection_seconds = {self.minimum_collection_seconds}: "
                "must not be negative"
            )
        if self.imbalance_threshold < 1:
            raise JobError(
                f"[run.policy] imbalance_threshold = {self.imbalance_threshold}: must be at least 1"
            )

    @property
    def minimum_span_seconds(self) -> float:
        """Rounds are their own span."""
        return self.minimum_collection_seconds


def next_collection(collection_seconds: float, moved_seconds: float | None, minimum_seconds: float) -> float:
    """How long the next round collects: as long as moving took; half as long as before if nothing moved."""
    wanted = collection_seconds / 2 if moved_seconds is None else moved_seconds
    return max(minimum_seconds, wanted)


def round_is_over(snapshot: PlacementSnapshot, parameters: RoundParameters) -> bool:
    wanted = max(snapshot.collection_seconds, parameters.minimum_collection_seconds)
    return snapshot.collected_seconds > 0 and snapshot.collected_seconds >= wanted


def pairs(order: Sequence[T]) -> Iterator[tuple[T, T]]:
    """First and last, second and last but one, and so on to the middle."""
    for place in range(len(order) // 2):
        yield order[place], order[-1 - place]
