"""Decides, between two epochs, which groups change their processor, and sees the moves through.

A policy suggests; each suggestion is accepted, or refused with a reason. Rules: one adaptation of a kind at a
time, and not two kinds at once; a minimal span between two; none right after a restart, when statistics are
empty and images are being read back; no group inside a row, in clean-up or on the move; no processor beyond
its memory for state. What is suggested together (a round of Flux, a diffusion) is one adaptation.

Each epoch: `decide`, then `plan` (what the epoch does), and after its commit `observe`. Nothing here reads a
clock: time comes with the snapshot. Known limit: what was forced to disk is counted from the last restart on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from spillway.manager.relocation.moves import Load, MoveInProgress, advanced, begun, moving_groups, next_loads
from spillway.model import GroupSet, group_set, members
from spillway.policy.placement import (
    ForcedSpill,
    Move,
    PlacementPolicy,
    PlacementSnapshot,
    RoundParameters,
    Suggestions,
    next_collection,
    round_is_over,
)


class Kind(StrEnum):
    RELOCATION = "relocation"
    FORCED_SPILL = "forced spill"


@dataclass(frozen=True, slots=True)
class RelocationLimits:
    load_bytes: int = 8 << 20
    """What a receiver loads per epoch, at most, so that no other group waits for a move."""
    restart_epochs: int = 5
    """Epochs after a start or a lost executor in which nothing is adapted."""
    wait_epochs: int = 10
    """How long a loaded move waits for groups that are inside a row or in clean-up, before they stay.

    And how long a move waits for a receiver that makes room for it.
    """


@dataclass(frozen=True, slots=True)
class Refusal:
    suggestion: Move | ForcedSpill
    reason: str


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A move, or a part of it, that was begun and is not going to happen."""

    number: int
    groups: GroupSet
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    begun: tuple[MoveInProgress, ...] = ()
    spills: tuple[ForcedSpill, ...] = ()
    refused: tuple[Refusal, ...] = ()
    relieved: frozenset[int] = frozenset()
    """Processors beyond their memory for state that need not spill: a move under way relieves them."""
    round_over: bool = False
    """The statistics begin anew, although nothing moves."""


@dataclass(frozen=True, slots=True)
class RelocationStep:
    """What the next epoch does for the moves under way."""

    loads: tuple[Load, ...] = ()
    completed: tuple[MoveInProgress, ...] = ()
    """Moves whose groups the receiver has from this epoch on."""
    abandoned: tuple[Abandoned, ...] = ()


@dataclass(slots=True)
class RelocationManager:
    policy: PlacementPolicy
    limits: RelocationLimits = field(default_factory=RelocationLimits)
    started_epoch: int = 0
    """The first epoch after the last start or loss of an executor."""
    moves: tuple[MoveInProgress, ...] = ()
    collection_seconds: float = 0.0
    """How long the round of statistics is to be, for policies in rounds."""
    forced_bytes: int = 0
    adapted_seconds: dict[int, float] = field(default_factory=dict)
    """Per processor, when its last adaptation ended."""
    _ended: dict[Kind, float] = field(default_factory=dict)
    _moving_since: float | None = None
    """When the first of the moves under way began, also of those that have ended meanwhile."""
    _numbers: int = 0

    @property
    def moving(self) -> GroupSet:
        return moving_groups(self.moves)

    def decide(self, snapshot: PlacementSnapshot) -> Decision:
        """Ask the policy, and accept or refuse what it suggests."""
        decision = self._judge(self.policy(snapshot), snapshot, manual=False)
        parameters = self.policy.parameters
        if (
            self.moves
            or not isinstance(parameters, RoundParameters)
            or not round_is_over(snapshot, parameters)
        ):
            return decision
        shortest = parameters.minimum_collection_seconds
        self.collection_seconds = next_collection(self.collection_seconds, None, shortest)
        return Decision(decision.begun, decision.spills, decision.refused, decision.relieved, round_over=True)

    def request(self, suggestions: Suggestions, snapshot: PlacementSnapshot) -> Decision:
        """What a user asks for: spans do not count, safety does."""
        return self._judge(suggestions, snapshot, manual=True)

    def plan(self, snapshot: PlacementSnapshot, pinned: GroupSet = 0) -> RelocationStep:
        """What the next epoch does; `pinned` are groups inside a row or in clean-up. Changes nothing yet."""
        completed, abandoned, going = [], [], []
        promised: dict[int, int] = {}  # to each receiver, by moves before
        for one in self.moves:
            reason = _obstacle(one, snapshot, self.limits.wait_epochs)
            if reason is not None:
                abandoned.append(Abandoned(one.number, one.groups, reason))
            elif one.left_bytes:
                receiver = one.move.receiver
                if not _lacks_room(one, snapshot, promised.get(receiver, 0)):
                    going.append(one)
                    promised[receiver] = promised.get(receiver, 0) + one.left_bytes
            elif not one.groups & pinned:
                completed.append(one)
            elif one.waited_epochs >= self.limits.wait_epochs:
                stay = one.groups & pinned
                abandoned.append(Abandoned(one.number, stay, "still inside a row or in clean-up"))
                if one.groups & ~stay:
                    completed.append(one.without(stay))
        return RelocationStep(next_loads(going, self.limits.load_bytes), tuple(completed), tuple(abandoned))

    def observe(self, step: RelocationStep, now_seconds: float) -> None:
        """Take in that the epoch with this step is committed."""
        parted = {one.number for one in step.completed} | {one.number for one in step.abandoned}
        ended = [one for one in self.moves if one.number in parted]
        if self.moves and self._moving_since is None:
            self._moving_since = min(one.begun_seconds for one in self.moves)
        self.moves = advanced((one for one in self.moves if one.number not in parted), step.loads)
        for one in ended:
            self._note(Kind.RELOCATION, (one.move.sender, one.move.receiver), now_seconds)
        if self.moves or self._moving_since is None:
            return
        took, self._moving_since = now_seconds - self._moving_since, None
        if isinstance(self.policy.parameters, RoundParameters):
            shortest = self.policy.parameters.minimum_collection_seconds
            self.collection_seconds = next_collection(self.collection_seconds, took, shortest)

    def _judge(self, suggestions: Suggestions, snapshot: PlacementSnapshot, *, manual: bool) -> Decision:
        busy = bool(self.moves)
        accepted: list[MoveInProgress] = []
        spills: list[ForcedSpill] = []
        refused: list[Refusal] = []
        for move in suggestions.moves:
            reason = (
                "a relocation is under way" if busy else self._too_soon(Kind.RELOCATION, snapshot, manual)
            )
            reason = reason or self._unsafe_move(move, snapshot)
            if reason is not None:
                refused.append(Refusal(move, reason))
                continue
            sizes = {one.group: one.resident_bytes for one in snapshot.groups}
            one = begun(self._numbers, move, sizes, snapshot.epoch, snapshot.now_seconds)
            self._numbers += 1
            self.moves = (*self.moves, one)
            accepted.append(one)
        soon = self._too_soon(Kind.FORCED_SPILL, snapshot, manual)
        for spill in suggestions.spills:
            reason = "a relocation is under way" if self.moves else soon
            reason = reason or self._unsafe_spill(spill, snapshot, spills)
            if reason is not None:
                refused.append(Refusal(spill, reason))
                continue
            spills.append(spill)
            self.forced_bytes += spill.bytes
        for spill in spills:
            self._note(Kind.FORCED_SPILL, (spill.processor,), snapshot.now_seconds)
        senders = {one.move.sender for one in self.moves}
        return Decision(tuple(accepted), tuple(spills), tuple(refused), suggestions.relieved & senders)

    def _too_soon(self, kind: Kind, snapshot: PlacementSnapshot, manual: bool) -> str | None:
        if manual:
            return None
        since = snapshot.epoch - self.started_epoch
        if since < self.limits.restart_epochs:
            return f"only {since} epochs since the start; {self.limits.restart_epochs} are waited"
        span = self.policy.parameters.minimum_span_seconds
        passed = snapshot.now_seconds - self._ended.get(kind, float("-inf"))
        return f"the last {kind} ended {passed:.1f} s ago; the span is {span:g} s" if passed < span else None

    def _unsafe_move(self, move: Move, snapshot: PlacementSnapshot) -> str | None:
        known = {one.processor for one in snapshot.processors}
        if move.receiver not in known or move.sender not in known:
            return f"there is no processor {move.receiver if move.sender in known else move.sender}"
        if move.sender == move.receiver or not move.groups:
            return "nothing would move"
        reason = self._unsafe_groups(move.groups, move.sender, snapshot)
        if reason is not None:
            return reason
        size = sum(one.resident_bytes for one in snapshot.groups if move.groups >> one.group & 1)
        receiver = snapshot.processor(move.receiver)
        room = receiver.room_bytes - self._incoming(move.receiver, receiver.incoming_bytes)
        if move.makes_room and size <= receiver.capacity:
            return None
        if size and size > room:
            return f"processor {move.receiver} has room for {max(0, int(room))} bytes, not for {size}"
        return None

    def _incoming(self, receiver: int, counted_bytes: int) -> int:
        """What moves under way will add, as far as the snapshot does not count it."""
        left = sum(one.left_bytes for one in self.moves if one.move.receiver == receiver)
        return max(0, left - counted_bytes)

    def _unsafe_spill(
        self, spill: ForcedSpill, snapshot: PlacementSnapshot, accepted: Iterable[ForcedSpill]
    ) -> str | None:
        if not spill.groups:
            return "nothing would be spilled"
        twice = group_set(group for one in accepted for group in members(one.groups)) & spill.groups
        if twice:
            return f"groups {_shown(twice)} are spilled already"
        return self._unsafe_groups(spill.groups, spill.processor, snapshot)

    def _unsafe_groups(self, groups: GroupSet, processor: int, snapshot: PlacementSnapshot) -> str | None:
        moving = groups & self.moving
        if moving:
            return f"groups {_shown(moving)} are moving already"
        mine = [one for one in snapshot.groups_of(processor) if groups >> one.group & 1]
        elsewhere = groups & ~group_set(one.group for one in mine)
        if elsewhere:
            return f"groups {_shown(elsewhere)} are not on processor {processor}"
        pinned = group_set(one.group for one in mine if not one.movable)
        return f"groups {_shown(pinned)} are inside a row or in clean-up" if pinned else None

    def _note(self, kind: Kind, processors: Iterable[int], now_seconds: float) -> None:
        self._ended[kind] = now_seconds
        for processor in processors:
            self.adapted_seconds[processor] = now_seconds


def _obstacle(one: MoveInProgress, snapshot: PlacementSnapshot, wait_epochs: int) -> str | None:
    """Why a move that is under way cannot go on; a receiver that makes room has some epochs for it."""
    if one.move.receiver not in {processor.processor for processor in snapshot.processors}:
        return f"processor {one.move.receiver} is gone"
    here = group_set(group.group for group in snapshot.groups_of(one.move.sender))
    if one.groups & ~here:
        return f"groups {_shown(one.groups & ~here)} are no longer on processor {one.move.sender}"
    sizes = {group.group: group.resident_bytes for group in snapshot.groups}
    gone = group_set(group for group, size in one.sizes if size and not sizes[group])
    if gone:
        return f"groups {_shown(gone)} left the memory of processor {one.move.sender}"
    if _lacks_room(one, snapshot) and not (
        one.move.makes_room and snapshot.epoch - one.begun_epoch <= wait_epochs
    ):
        receiver = snapshot.processor(one.move.receiver)
        room = max(0, (receiver.state_limit_bytes or 0) - receiver.resident_bytes)
        return f"processor {one.move.receiver} has only room for {room} of {one.left_bytes} bytes"
    return None


def _lacks_room(one: MoveInProgress, snapshot: PlacementSnapshot, promised_bytes: int = 0) -> bool:
    receiver = snapshot.processor(one.move.receiver)
    if receiver.state_limit_bytes is None or not one.left_bytes:
        return False
    return one.left_bytes > receiver.state_limit_bytes - receiver.resident_bytes - promised_bytes


def _shown(groups: GroupSet) -> str:
    return ", ".join(str(group) for group in members(groups))
