"""Moves in progress, as values: make before break.

The sender keeps its groups while the receiver loads them from the durable runs: a limited number of bytes per
epoch, run by run, so that each is read once. When all is loaded, the placement changes, and the receiver
reads the runs that were added since, as it reads any new run.
The list of moves lives in the driver only: after a restart nothing is in progress, and nothing is lost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spillway.model import GroupSet, group_set, members
from spillway.policy.placement import Move
from spillway.state.rows import Run, in_order


@dataclass(frozen=True, slots=True)
class Load:
    """What a receiver loads in one epoch for one move, in bytes of the state that is to move."""

    number: int
    sender: int
    receiver: int
    bytes: int


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


def next_loads(moves: Iterable[MoveInProgress], limit_bytes: int) -> tuple[Load, ...]:
    """What the receivers load in the next epoch, each at most `limit_bytes`; older moves first."""
    spent: dict[int, int] = {}
    loads = []
    for moving in moves:
        receiver = moving.move.receiver
        size = min(moving.left_bytes, limit_bytes - spent.get(receiver, 0))
        if size > 0:
            spent[receiver] = spent.get(receiver, 0) + size
            loads.append(Load(moving.number, moving.move.sender, receiver, size))
    return tuple(loads)


def advanced(moves: Iterable[MoveInProgress], loads: Sequence[Load]) -> tuple[MoveInProgress, ...]:
    """The moves after an epoch that loaded this."""
    by_number = {load.number: load.bytes for load in loads}
    return tuple(
        replace(
            moving,
            loaded_bytes=moving.loaded_bytes + by_number.get(moving.number, 0),
            waited_epochs=moving.waited_epochs + (moving.left_bytes == 0),
        )
        for moving in moves
    )


def placed(placement: Sequence[int], moves: Iterable[MoveInProgress]) -> tuple[int, ...]:
    """The placement after these moves."""
    owners = {group: moving.move.receiver for moving in moves for group in members(moving.groups)}
    return tuple(owners.get(group, owner) for group, owner in enumerate(placement))


def moving_groups(moves: Iterable[MoveInProgress]) -> GroupSet:
    return group_set(group for moving in moves for group in members(moving.groups))


def incoming_runs(runs: Iterable[Run], moving: MoveInProgress, loaded_bytes: int) -> tuple[Run, ...]:
    """The runs that the receiver has after loading this many bytes, oldest first, with the moving groups.

    The share of a run that belongs to the groups is estimated from their number, so an epoch may load a run
    more or less than its bytes say; after all bytes it has all runs from before the move.
    """
    total = sum(size for _, size in moving.sizes)
    slices = [
        (replace(run, live=run.live & moving.groups), run.bytes * (run.live & moving.groups).bit_count())
        for run in in_order(runs)
        if run.live & moving.groups and run.last_epoch < moving.begun_epoch
    ]
    whole = sum(weight for _, weight in slices)
    taken, reached = [], 0
    for run, weight in slices:
        if reached * total >= loaded_bytes * whole:
            break
        taken.append(run)
        reached += weight
    return tuple(taken)
