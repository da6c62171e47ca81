"""The state machine of a relocation: suggested, then refused or begun, loaded, and completed or abandoned.

    suggested    by a policy, by a user, or because the number of processors changes
    refused      with a reason, which the journal gets (`safety` and the rules below)
    begun        the sender still owns the groups; the receiver loads them, a slice per epoch (`moves`)
    completed    all is loaded: the placement changes with the next epoch
    abandoned    with a reason: the receiver gives up what it has loaded

Rules: one adaptation of a kind at a time, and not two kinds at once; a minimal span between two; none right
after a restart, when statistics are empty and images are being read back; no group inside a row, in clean-up
or already moving; no processor beyond its memory for state. What is suggested together (a round of Flux, a
diffusion) is one adaptation. While the number of processors changes, the policy is not asked.

Each epoch calls `advance` (or `hold`, if it only cleans up), and `observe` after its commit. Nothing here
reads a clock: time comes with the snapshot. Known limit: forced spills are counted since the last restart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from spillway.manager.relocation.decision import Abandoned, Decision, MovesStep, Refusal, Relocation
from spillway.manager.relocation.moves import (
    Load,
    MoveInProgress,
    advanced,
    begun,
    incoming_runs,
    moving_groups,
    next_loads,
    placed,
)
from spillway.manager.relocation.safety import lacks_room, obstacle, pinned_groups, unsafe_move, unsafe_spill
from spillway.model import GroupSet, group_set
from spillway.policy.placement import (
    ForcedSpill,
    Move,
    PlacementPolicy,
    PlacementSnapshot,
    RoundParameters,
    Suggestions,
    next_collection,
    round_is_over,
    spread_groups,
)
from spillway.state.log import Manifest
from spillway.state.rows import Run


class Kind(StrEnum):
    RELOCATION = "relocation"
    FORCED_SPILL = "forced spill"


@dataclass(frozen=True, slots=True)
class RelocationLimits:
    load_bytes: int = 8 << 20
    """What a receiver loads per epoch, at most, so that no other group waits for a move. Ours."""
    restart_epochs: int = 5
    """Epochs after a start or a lost executor in which nothing is adapted. Ours."""
    wait_epochs: int = 10
    """How long a loaded move waits for groups that are inside a row or in clean-up, before they stay.

    And how long a move waits for a receiver that makes room for it.
    """


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
    wanted_processors: int | None = None
    """How many processors there are to be, while that differs from how many there are."""
    _requested: Decision = field(default_factory=Decision)
    """What users asked for since the last epoch."""
    _ended: dict[Kind, float] = field(default_factory=dict)
    _moving_since: float | None = None
    """When the first move began since none was in progress."""
    _numbers: int = 0

    @property
    def moving(self) -> GroupSet:
        return moving_groups(self.moves)

    def request(self, suggestions: Suggestions, snapshot: PlacementSnapshot) -> Decision:
        """What a user asks for: spans do not count, safety does."""
        decision = self._judge(suggestions, snapshot, manual=True)
        self._requested = decision.after(self._requested)
        return decision

    def advance(
        self, manifest: Manifest, snapshot: PlacementSnapshot, resident_bytes: Mapping[int, int]
    ) -> Relocation:
        """What the next epoch does; `resident_bytes` is the memory that the processors reported."""
        decision = self._next_decision(snapshot)
        step = self.plan(snapshot, pinned_groups(manifest))
        after = manifest
        if step.completed:
            after = manifest.with_placement(placed(manifest.placement, step.completed))
        ended = step.ended
        going = [moving for moving in self.moves if moving.number not in ended]
        given_up: dict[int, GroupSet] = {}
        for part in step.abandoned:
            given_up[part.receiver] = given_up.get(part.receiver, 0) | part.groups
        return Relocation(
            step.loads,
            step.completed,
            step.abandoned,
            manifest=after,
            processors=self._processors(after),
            decision=decision,
            incoming=_incoming(manifest, going, step.loads),
            given_up=given_up,
            senders=frozenset(moving.move.sender for moving in going),
            resident_bytes=_resident_after(resident_bytes, going, step.completed),
        )

    def hold(self, manifest: Manifest) -> Relocation:
        """An epoch in which no move goes on; receivers keep what they have loaded."""
        return Relocation(
            manifest=manifest,
            processors=manifest.processor_count,
            incoming=_incoming(manifest, self.moves, ()),
            senders=frozenset(moving.move.sender for moving in self.moves),
        )

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
        return replace(decision, round_over=True)

    def plan(self, snapshot: PlacementSnapshot, pinned: GroupSet = 0) -> MovesStep:
        """How the moves go on; `pinned` are groups inside a row or in clean-up. Changes nothing yet."""
        completed, abandoned, loading = [], [], []
        promised: dict[int, int] = {}  # to each receiver, by older moves
        for moving in self.moves:
            receiver = moving.move.receiver
            reason = obstacle(moving, snapshot, self.limits.wait_epochs)
            if reason is not None:
                abandoned.append(Abandoned(moving.number, receiver, moving.groups, reason))
            elif moving.left_bytes:
                if not lacks_room(moving, snapshot, promised.get(receiver, 0)):
                    loading.append(moving)
                    promised[receiver] = promised.get(receiver, 0) + moving.left_bytes
            elif not moving.groups & pinned:
                completed.append(moving)
            elif moving.waited_epochs >= self.limits.wait_epochs:
                stay = moving.groups & pinned
                reason = "still inside a row or in clean-up"
                abandoned.append(Abandoned(moving.number, receiver, stay, reason))
                if moving.groups & ~stay:
                    completed.append(moving.without(stay))
        return MovesStep(next_loads(loading, self.limits.load_bytes), tuple(completed), tuple(abandoned))

    def observe(self, step: MovesStep, now_seconds: float) -> None:
        """Take in that the epoch with this step is committed."""
        self._requested = Decision()
        numbers = step.ended
        ended = [moving for moving in self.moves if moving.number in numbers]
        if self.moves and self._moving_since is None:
            self._moving_since = min(moving.begun_seconds for moving in self.moves)
        going = [moving for moving in self.moves if moving.number not in numbers]
        self.moves = advanced(going, step.loads)
        for moving in ended:
            self._note(Kind.RELOCATION, (moving.move.sender, moving.move.receiver), now_seconds)
        if self.moves or self._moving_since is None:
            return
        took, self._moving_since = now_seconds - self._moving_since, None
        if isinstance(self.policy.parameters, RoundParameters):
            shortest = self.policy.parameters.minimum_collection_seconds
            self.collection_seconds = next_collection(self.collection_seconds, took, shortest)

    def _next_decision(self, snapshot: PlacementSnapshot) -> Decision:
        wanted = self.wanted_processors
        if wanted is None:
            return self.decide(snapshot).after(self._requested)
        if self.moves or wanted > len(snapshot.processors):
            return self._requested
        return self._resized(snapshot, wanted)

    def _resized(self, snapshot: PlacementSnapshot, wanted: int) -> Decision:
        """Moves after which only the first processors have groups; what has no room there goes to disk."""
        suggestions = spread_groups(snapshot, range(wanted), "resize")
        decision = self._judge(suggestions, snapshot, manual=True)
        if wanted == len(snapshot.processors):
            self.wanted_processors = None
        refused = [refusal.suggestion for refusal in decision.refused]
        resident = group_set(group.group for group in snapshot.groups if group.resident_bytes)
        homeless = tuple(
            ForcedSpill(move.sender, move.groups & resident, move.bytes, "resize")
            for move in refused
            if isinstance(move, Move) and move.sender >= wanted and move.groups & resident
        )
        return replace(decision, spills=homeless)

    def _processors(self, manifest: Manifest) -> int:
        """How many there are in the next epoch; one that is to go stays until its last group has left."""
        count, wanted = manifest.processor_count, self.wanted_processors
        if wanted is None:
            return count
        return max(wanted, 1 + max(manifest.placement)) if wanted < count else wanted

    def _judge(self, suggestions: Suggestions, snapshot: PlacementSnapshot, *, manual: bool) -> Decision:
        busy = bool(self.moves)
        accepted: list[MoveInProgress] = []
        spills: list[ForcedSpill] = []
        refused: list[Refusal] = []
        sizes = {group.group: group.resident_bytes for group in snapshot.groups}
        for move in suggestions.moves:
            reason = (
                "a relocation is under way" if busy else self._too_soon(Kind.RELOCATION, snapshot, manual)
            )
            reason = reason or unsafe_move(move, snapshot, self.moves)
            if reason is not None:
                refused.append(Refusal(move, reason))
                continue
            moving = begun(self._numbers, move, sizes, snapshot.epoch, snapshot.now_seconds)
            self._numbers += 1
            self.moves = (*self.moves, moving)
            accepted.append(moving)
        soon = self._too_soon(Kind.FORCED_SPILL, snapshot, manual)
        for spill in suggestions.spills:
            reason = "a relocation is under way" if self.moves else soon
            reason = reason or unsafe_spill(spill, snapshot, self.moves, spills)
            if reason is not None:
                refused.append(Refusal(spill, reason))
                continue
            spills.append(spill)
            self.forced_bytes += spill.bytes
        for spill in spills:
            self._note(Kind.FORCED_SPILL, (spill.processor,), snapshot.now_seconds)
        senders = {moving.move.sender for moving in self.moves}
        return Decision(tuple(accepted), tuple(spills), tuple(refused), suggestions.relieved & senders)

    def _too_soon(self, kind: Kind, snapshot: PlacementSnapshot, manual: bool) -> str | None:
        if manual:
            return None
        since = snapshot.epoch - self.started_epoch
        if since < self.limits.restart_epochs:
            return f"{since} epochs since the start; adaptation waits for {self.limits.restart_epochs}"
        span = self.policy.parameters.minimum_span_seconds
        passed = snapshot.now_seconds - self._ended.get(kind, float("-inf"))
        return f"the last {kind} ended {passed:.1f} s ago; the span is {span:g} s" if passed < span else None

    def _note(self, kind: Kind, processors: Iterable[int], now_seconds: float) -> None:
        self._ended[kind] = now_seconds
        for processor in processors:
            self.adapted_seconds[processor] = now_seconds


def _incoming(
    manifest: Manifest, going: Iterable[MoveInProgress], loads: Sequence[Load]
) -> dict[int, tuple[Run, ...]]:
    """The runs that each receiver has after these loads."""
    loaded = {load.number: load.bytes for load in loads}
    incoming: dict[int, tuple[Run, ...]] = {}
    for moving in going:
        receiver, size = moving.move.receiver, moving.loaded_bytes + loaded.get(moving.number, 0)
        runs = incoming_runs(manifest.runs.values(), moving, size)
        incoming[receiver] = (*incoming.get(receiver, ()), *runs)
    return incoming


def _resident_after(
    resident_bytes: Mapping[int, int], going: Iterable[MoveInProgress], completed: Iterable[MoveInProgress]
) -> dict[int, int]:
    resident = dict(resident_bytes)
    for moving in going:
        if moving.move.makes_room:
            resident[moving.move.receiver] = resident.get(moving.move.receiver, 0) + moving.left_bytes
    for moving in completed:
        sender = moving.move.sender
        resident[sender] = max(0, resident.get(sender, 0) - moving.move.bytes)
    return resident
