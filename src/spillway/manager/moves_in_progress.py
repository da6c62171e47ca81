"""Moves under way, as values: make before break.

The sender goes on with its groups while the receiver loads them from the durable runs, at most so many bytes
per epoch; a group larger than that takes several epochs. When all is loaded, the placement changes. What the
groups have grown by meanwhile the receiver reads with the change, as it reads any new run.
A table of moves lives in the driver only: after a restart nothing is under way, and nothing is lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spillway.model.group_set import GroupSet, group_set, members
from spillway.policy.placement import Move


@dataclass(frozen=True, slots=True)
class LoadPart:
    """A part of one group's state, by the bytes it had when the move began."""

    group: int
    from_bytes: int
    to_bytes: int


@dataclass(frozen=True, slots=True)
class Load:
    """What a receiver loads in one epoch for one move."""

    number: int
    sender: int
    receiver: int
    parts: tuple[LoadPart, ...]

    @property
    def bytes(self) -> int:
        return sum(part.to_bytes - part.from_bytes for part in self.parts)


@dataclass(frozen=True, slots=True)
class MoveInProgress:
    number: int
    move: Move
    sizes: tuple[tuple[int, int], ...]
    """Group and bytes of state in memory, in the order of loading."""
    begun_epoch: int
    begun_seconds: float
    loaded_bytes: int = 0
    waited_epochs: int = 0
    """Epochs since all was loaded."""

    @property
    def groups(self) -> GroupSet:
        return self.move.groups

    @property
    def left_bytes(self) -> int:
        return sum(size for _, size in self.sizes) - self.loaded_bytes

    def without(self, groups: GroupSet) -> "MoveInProgress":
        """The move without groups that stay; only once all is loaded, because progress is a sum."""
        sizes = tuple((group, size) for group, size in self.sizes if not groups >> group & 1)
        total = sum(size for _, size in sizes)
        move = replace(self.move, groups=self.groups & ~groups, bytes=total)
        return replace(self, move=move, sizes=sizes, loaded_bytes=total)


def begun(
    number: int, move: Move, sizes: Mapping[int, int], epoch: int, now_seconds: float
) -> MoveInProgress:
    parts = tuple((group, sizes[group]) for group in members(move.groups))
    return MoveInProgress(number, move, parts, epoch, now_seconds)


def next_loads(table: Iterable[MoveInProgress], limit_bytes: int) -> tuple[Load, ...]:
    """What the receivers load in the next epoch, each at most `limit_bytes`; older moves first."""
    spent: dict[int, int] = {}
    loads = []
    for one in table:
        receiver = one.move.receiver
        parts = tuple(_parts(one, limit_bytes - spent.get(receiver, 0)))
        if parts:
            load = Load(one.number, one.move.sender, receiver, parts)
            spent[receiver] = spent.get(receiver, 0) + load.bytes
            loads.append(load)
    return tuple(loads)


def advanced(table: Iterable[MoveInProgress], loads: Sequence[Load]) -> tuple[MoveInProgress, ...]:
    """The table after an epoch that loaded this."""
    by_number = {load.number: load.bytes for load in loads}
    return tuple(
        replace(
            one,
            loaded_bytes=one.loaded_bytes + by_number.get(one.number, 0),
            waited_epochs=one.waited_epochs + (one.left_bytes == 0),
        )
        for one in table
    )


def placed(placement: Sequence[int], moves: Iterable[MoveInProgress]) -> tuple[int, ...]:
    """The placement after these moves."""
    owners = {group: one.move.receiver for one in moves for group in members(one.groups)}
    return tuple(owners.get(group, owner) for group, owner in enumerate(placement))


def moving_groups(table: Iterable[MoveInProgress]) -> GroupSet:
    return group_set(group for one in table for group in members(one.groups))


def _parts(one: MoveInProgress, limit_bytes: int) -> Iterator[LoadPart]:
    place = 0
    begin, end = (
        one.loaded_bytes,
        min(one.loaded_bytes + max(0, limit_bytes), one.loaded_bytes + one.left_bytes),
    )
    for group, size in one.sizes:
        low, high = max(begin, place), min(end, place + size)
        if low < high:
            yield LoadPart(group, low - place, high - place)
        place += size
