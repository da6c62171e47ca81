"""What a placement policy suggests: groups to move, and processors to make spill. The manager decides."""

from collections.abc import Iterable
from dataclasses import dataclass

from spillway.model import GroupNumbers, group_set
from spillway.policy.placement.snapshot import PlacedGroup


@dataclass(frozen=True, slots=True)
class Move:
    groups: GroupNumbers
    sender: int
    receiver: int
    bytes: int
    """State that the receiver has to load: nothing for suspended groups."""
    reason: str
    makes_room: bool = False
    """A receiver without room for it gives up other state first; otherwise the move is refused."""


@dataclass(frozen=True, slots=True)
class ForcedSpill:
    """State that leaves memory although its processor has room: others need the room more."""

    processor: int
    groups: GroupNumbers
    bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    moves: tuple[Move, ...] = ()
    spills: tuple[ForcedSpill, ...] = ()
    relieved: frozenset[int] = frozenset()
    """Processors beyond their memory for state that need not spill, because moves relieve them."""


NOTHING = Suggestions()


def move_of(
    groups: Iterable[PlacedGroup], sender: int, receiver: int, reason: str, *, makes_room: bool = False
) -> Move:
    chosen = tuple(groups)
    size = sum(group.resident_bytes for group in chosen)
    return Move(group_set(group.group for group in chosen), sender, receiver, size, reason, makes_room)
