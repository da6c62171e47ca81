"""What a spill policy sees: the groups of one processor at one moment. Immutable, without a clock."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

INACTIVE_EPOCHS = 10
"""By default, epochs without rows after which a group is inactive."""


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """One group's current generation."""

    group: int
    bytes: int
    results: int
    age_epochs: int
    """Epochs since the generation began."""
    idle_epochs: int
    """Epochs since the last row came."""
    rows: int = 0
    recent_results: float = 0.0
    """Results of recent epochs, older ones weighing less."""
    outputs: int = 0
    """Results of the view that came through the group."""
    inter_bytes: int = 0
    """Bytes of rows that came from it and that joins above keep."""
    height: int = 0
    """How many joins are between it and the results of the view."""

    @property
    def productivity(self) -> float:
        """Result rows per byte of state."""
        return self.results / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class SpillSnapshot:
    groups: tuple[GroupStatistics, ...]
    """The groups with rows in memory."""
    wanted_bytes: int
    """How much memory is to be freed."""
    minimum_age_epochs: int = 2
    """A younger generation has not shown yet how productive it is: it goes last."""
    inactive_epochs: int = INACTIVE_EPOCHS


SpillPolicy = Callable[[SpillSnapshot, Random], Sequence[int]]
"""Chooses the groups to spill. All randomness comes from the generator that is passed in."""


def take_until(ordered: Sequence[GroupStatistics], snapshot: SpillSnapshot) -> tuple[int, ...]:
    """The first groups of the order that free what is wanted, those of sufficient age before the others."""
    chosen = []
    freed = 0
    for group in _mature_first(ordered, snapshot.minimum_age_epochs):
        if freed >= snapshot.wanted_bytes:
            break
        chosen.append(group.group)
        freed += group.bytes
    return tuple(chosen)


def _mature_first(ordered: Sequence[GroupStatistics], age_epochs: int) -> Iterator[GroupStatistics]:
    yield from (group for group in ordered if group.age_epochs >= age_epochs)
    yield from (group for group in ordered if group.age_epochs < age_epochs)
