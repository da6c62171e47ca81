"""Why a suggestion is refused, and why a move in progress is abandoned. Pure; None: nothing is against it."""

from collections.abc import Iterable, Sequence

from spillway.manager.relocation.moves import MoveInProgress, moving_groups
from spillway.model import GroupSet, group_set, members, union
from spillway.policy.placement import ForcedSpill, Move, PlacementSnapshot
from spillway.state.log import Manifest


def pinned_groups(manifest: Manifest) -> GroupSet:
    """Groups that must stay where they are for now: inside a row, or half cleaned up."""
    return manifest.mid_row_groups | union(cursor.groups for cursor in manifest.cursors)


def unsafe_move(move: Move, snapshot: PlacementSnapshot, moves: Sequence[MoveInProgress]) -> str | None:
    """Why the move must not begin beside those in progress."""
    known = {processor.processor for processor in snapshot.processors}
    if move.receiver not in known or move.sender not in known:
        return f"there is no processor {move.receiver if move.sender in known else move.sender}"
    if move.sender == move.receiver or not move.groups:
        return "nothing would move"
    reason = _unsafe_groups(move.groups, move.sender, snapshot, moves)
    if reason is not None:
        return reason
    size = sum(group.resident_bytes for group in snapshot.groups if move.groups >> group.group & 1)
    receiver = snapshot.processor(move.receiver)
    incoming = sum(other.left_bytes for other in moves if other.move.receiver == move.receiver)
    room = receiver.room_bytes - max(0, incoming - receiver.incoming_bytes)  # of moves begun since
    if move.makes_room and size <= receiver.capacity:
        return None
    if size and size > room:
        return f"processor {move.receiver} has room for {max(0, int(room))} bytes, not for {size}"
    return None


def unsafe_spill(
    spill: ForcedSpill,
    snapshot: PlacementSnapshot,
    moves: Sequence[MoveInProgress],
    accepted: Iterable[ForcedSpill],
) -> str | None:
    """Why the groups must not be spilled, beside those of the spills that are accepted."""
    if not spill.groups:
        return "nothing would be spilled"
    twice = union(other.groups for other in accepted) & spill.groups
    if twice:
        return f"groups {_shown(twice)} are spilled already"
    return _unsafe_groups(spill.groups, spill.processor, snapshot, moves)


def _unsafe_groups(
    groups: GroupSet, processor: int, snapshot: PlacementSnapshot, moves: Iterable[MoveInProgress]
) -> str | None:
    moving = groups & moving_groups(moves)
    if moving:
        return f"groups {_shown(moving)} are moving already"
    mine = [group for group in snapshot.groups_of(processor) if groups >> group.group & 1]
    elsewhere = groups & ~group_set(group.group for group in mine)
    if elsewhere:
        return f"groups {_shown(elsewhere)} are not on processor {processor}"
    pinned = group_set(group.group for group in mine if not group.movable)
    return f"groups {_shown(pinned)} are inside a row or in clean-up" if pinned else None


def obstacle(moving: MoveInProgress, snapshot: PlacementSnapshot, wait_epochs: int) -> str | None:
    """Why a move in progress cannot go on; a receiver that makes room has some epochs for it."""
    move = moving.move
    if move.receiver not in {processor.processor for processor in snapshot.processors}:
        return f"processor {move.receiver} is gone"
    missing = move.groups & ~group_set(group.group for group in snapshot.groups_of(move.sender))
    if missing:
        return f"groups {_shown(missing)} are no longer on processor {move.sender}"
    sizes = {group.group: group.resident_bytes for group in snapshot.groups}
    gone = group_set(group for group, size in moving.sizes if size and not sizes[group])
    if gone:
        return f"groups {_shown(gone)} left the memory of processor {move.sender}"
    waits = move.makes_room and snapshot.epoch - moving.begun_epoch <= wait_epochs
    if lacks_room(moving, snapshot) and not waits:
        receiver = snapshot.processor(move.receiver)
        room = max(0, (receiver.state_limit_bytes or 0) - receiver.resident_bytes)
        return f"processor {move.receiver} has only room for {room} of {moving.left_bytes} bytes"
    return None


def lacks_room(moving: MoveInProgress, snapshot: PlacementSnapshot, promised_bytes: int = 0) -> bool:
    """Whether the receiver has no room for the rest, beside what is promised to other moves."""
    receiver = snapshot.processor(moving.move.receiver)
    if receiver.state_limit_bytes is None or not moving.left_bytes:
        return False
    return moving.left_bytes > receiver.state_limit_bytes - receiver.resident_bytes - promised_bytes


def _shown(groups: GroupSet) -> str:
    return ", ".join(str(group) for group in members(groups))
