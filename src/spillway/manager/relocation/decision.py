"""The values of a relocation: what was decided, and what the next epoch does for the moves in progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.manager.relocation.moves import Load, MoveInProgress
from spillway.model import GroupSet, union
from spillway.policy.placement import ForcedSpill, Move
from spillway.state.log import Manifest
from spillway.state.rows import Run


@dataclass(frozen=True, slots=True)
class Refusal:
    suggestion: Move | ForcedSpill
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of suggestions and requests."""

    begun: tuple[MoveInProgress, ...] = ()
    spills: tuple[ForcedSpill, ...] = ()
    refused: tuple[Refusal, ...] = ()
    relieved: frozenset[int] = frozenset()
    """Processors beyond their memory for state that need not spill: a move in progress relieves them."""
    round_over: bool = False
    """The statistics start again, although nothing moves."""

    def after(self, earlier: "Decision") -> "Decision":
        """This decision with the moves and refusals of an earlier one before its own."""
        return Decision(
            (*earlier.begun, *self.begun),
            self.spills,
            (*earlier.refused, *self.refused),
            self.relieved,
            self.round_over,
        )


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A move, or a part of it, that was begun and will not be completed."""

    number: int
    receiver: int
    groups: GroupSet
    reason: str


@dataclass(frozen=True, slots=True)
class MovesStep:
    """How each move in progress continues in the next epoch."""

    loads: tuple[Load, ...] = ()
    completed: tuple[MoveInProgress, ...] = ()
    """Moves whose groups the receiver has from this epoch on."""
    abandoned: tuple[Abandoned, ...] = ()

    @property
    def ended(self) -> frozenset[int]:
        """The numbers of the moves that are not in progress after it."""
        completed = frozenset(moving.number for moving in self.completed)
        return completed | {part.number for part in self.abandoned}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation(MovesStep):
    """A step with all that follows from it for the next epoch."""

    manifest: Manifest
    """What is committed, under the placement of the next epoch."""
    processors: int
    """How many there are in the next epoch."""
    decision: Decision = field(default_factory=Decision)
    incoming: Mapping[int, tuple[Run, ...]] = field(default_factory=dict)
    """What receivers have of moving groups after the epoch: runs, `live` reduced to those groups."""
    given_up: Mapping[int, GroupSet] = field(default_factory=dict)
    """What receivers have loaded of groups that stay where they are."""
    senders: frozenset[int] = frozenset()
    """Processors whose groups are being loaded elsewhere, so that the runs they are in must stay."""
    resident_bytes: Mapping[int, int] = field(default_factory=dict)
    """The memory of each processor once the senders of completed moves have freed it.

    A receiver that has to make room already counts what is still to come.
    """

    def released(self, processor: int) -> GroupSet:
        """Groups that the processor frees: it has sent them, or was to receive them and will not."""
        sent = union(move.groups for move in self.completed if move.move.sender == processor)
        return sent | self.given_up.get(processor, 0)
