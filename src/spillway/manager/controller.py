"""Decides what changes between two epochs: spills, turns, moves, quotas, the number of processors.

It asks each manager for its part and sees that the parts fit together: groups that change their processor
are spilled by the new one; a processor that moves relieve does not spill; while the number of processors
changes, no policy moves anything. Statistics in, a change out: the clock is passed in, nothing is executed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from spillway.errors import SpillwayError
from spillway.manager.change import Change, rotation_ended
from spillway.manager.config import EngineConfig
from spillway.manager.relocation import (
    Decision,
    MoveInProgress,
    PlacementStatistics,
    RelocationManager,
    RelocationStep,
    incoming_runs,
    pinned_groups,
    placed,
)
from spillway.manager.rotation import RotationManager, suspension
from spillway.manager.skew_buffer import quotas
from spillway.manager.spill import Spill, SpillManager
from spillway.model import GroupSet, Window, group_set, members, union
from spillway.policy.placement import (
    ForcedSpill,
    Move,
    PlacementSnapshot,
    Suggestions,
    placement_policy,
    spread_groups,
)
from spillway.state.log import EpochRecord, Manifest
from spillway.state.orders import Report
from spillway.state.rows import Run

LASTING_EPOCHS = 10
"""State that clean-up brings back to memory can stay there for so many epochs as things are."""


class Controller:
    def __init__(
        self,
        config: EngineConfig,
        *,
        splittable: bool,
        clock: Callable[[], float],
        heights: Sequence[int] = (),
        windows: Sequence[Window] = (),
    ) -> None:
        """`splittable`: whether groups may have several generations; those of a statistics view may not.

        `heights` says of each group how many joins are between it and the results, in a tree.
        """
        self._config = config
        self._splittable = splittable
        self._clock = clock
        self._windows = windows
        self.spill = SpillManager(
            config.budgets,
            config.spill,
            config.spill_share,
            heights=heights,
            inactive_epochs=config.inactive_epochs,
            history_weight=config.history_weight,
        )
        self.rotation: RotationManager | None = None
        if (config.rotation or not splittable) and config.budgets is not None:
            self.rotation = RotationManager(
                config.budgets,
                config.spill_share,
                config.rotation_gap_seconds,
                config.rotation_turns,
                config.rotation_backlog_bytes,
                splittable,
                clock,
            )
        self.relocation = RelocationManager(placement_policy(config.adapt, config.policy), config.relocation)
        self.statistics = PlacementStatistics(config.load_signal)
        self._asked = Decision()
        """What users asked for since the last epoch."""
        self._wanted_processors: int | None = None

    @property
    def resident_bytes(self) -> dict[int, int]:
        """What each processor had in memory after the last epoch."""
        return self.statistics.resident_bytes

    def room_bytes(self, manifest: Manifest) -> dict[int, int]:
        """How much state may come back to each processor that had to leave it.

        Up to a share of its memory in any case, and beyond that if it can stay for some epochs.
        """
        budgets = self._config.budgets
        if budgets is None:
            return {}
        growth = self.statistics.growth_bytes(manifest.placement)
        room = {}
        for processor, resident in self.statistics.resident_bytes.items():
            limit = budgets.of(processor).state_bytes
            allowed = limit * self._config.room_share
            if growth is not None:
                allowed = max(allowed, limit - LASTING_EPOCHS * growth.get(processor, 0.0))
            room[processor] = int(allowed) - resident
        return room

    def is_behind(self, manifest: Manifest) -> bool:
        """Whether so much waits for suspended groups that new input should wait."""
        return self.rotation is not None and self.rotation.is_behind(manifest)

    def started(self, epoch: int) -> None:
        """The first epoch after a start is this: its statistics are empty, its images are being read back."""
        self.relocation.started_epoch = epoch

    def decide(self, manifest: Manifest, *, forced: bool) -> Change:
        """What the next epoch begins with; `forced` if suspended groups get their turn in any case."""
        snapshot = self._snapshot(manifest, manifest.processor_count)
        decision = self._decision(manifest, snapshot)
        step = self.relocation.plan(snapshot, pinned_groups(manifest))
        placement = placed(manifest.placement, step.completed)
        after = manifest.with_placement(placement) if step.completed else manifest
        pushed = [_spill(spill, snapshot) for spill in decision.spills]
        change = self._evictions(after, self._resident_after(step), decision.relieved, pushed, forced=forced)
        return replace(
            change,
            decision=decision,
            step=step,
            placement=placement,
            processors=self._processors(after),
            incoming=self._incoming(manifest, step),
            given_up=self._given_up(step),
            senders=self._senders(step),
            quotas=quotas(snapshot, self.statistics.arrived_rows(), self._config.buffer_bytes),
        )

    def cleaning(self, manifest: Manifest, cleaned: GroupSet, growing: GroupSet) -> Change:
        """An epoch that only cleans up changes nothing, unless joins above grow by it."""
        spills: list[Spill] = []
        if growing:
            resident = self.statistics.resident_bytes
            spills = self.spill.decide(manifest, resident, self.relocation.moving, pinned=cleaned)
        return Change(
            spills=tuple(spills),
            placement=manifest.placement,
            processors=manifest.processor_count,
            incoming=self._incoming(manifest, RelocationStep()),
            senders=self._senders(RelocationStep()),
        )

    def observe(
        self, change: Change, record: EpochRecord, reports: Sequence[Report], seconds: float, *, clean: bool
    ) -> None:
        """Take in a committed epoch."""
        results = {group: counts[2] for group, counts in record.grown.items()}
        self.spill.observe(results, begun=record.spilled, ended=record.cleaned)
        if self.rotation is not None:
            took = {r.processor: r.seconds.get("load", 0.0) + r.seconds.get("free", 0.0) for r in reports}
            self.rotation.observe(record.sequence, change.swaps, took)
        if clean:
            self.statistics.resident_bytes = {report.processor: report.resident_bytes for report in reports}
            return
        self._asked = Decision()
        self.relocation.observe(change.step, self._clock())
        if change.decision.round_over or change.step.completed:
            self.statistics.restart()
        self.statistics.observe(reports, seconds)

    def rebalance(self, manifest: Manifest) -> Decision:
        """Spread the groups evenly, as a user asks; the moves begin with the next epoch."""
        processors = manifest.processor_count
        snapshot = self._snapshot(manifest, processors)
        return self._ask(spread_groups(snapshot, range(processors), "on demand"), snapshot)

    def move(self, manifest: Manifest, groups: GroupSet, receiver: int) -> Decision:
        """Move groups to a processor, as a user asks."""
        snapshot = self._snapshot(manifest, manifest.processor_count)
        by_sender: dict[int, list[int]] = {}
        for group in members(groups):
            if manifest.placement[group] != receiver:
                by_sender.setdefault(manifest.placement[group], []).append(group)
        sizes = {one.group: one.resident_bytes for one in snapshot.groups}
        moves = tuple(
            Move(
                group_set(of),
                sender,
                receiver,
                sum(sizes[group] for group in of),
                "on demand",
            )
            for sender, of in sorted(by_sender.items())
        )
        return self._ask(Suggestions(moves), snapshot)

    def check_size(self, processors: int) -> None:
        if not 1 <= processors <= self._config.groups:
            raise SpillwayError(
                f"resize({processors}): must be at least 1 and at most groups = {self._config.groups}"
            )

    def resize(self, manifest: Manifest, processors: int) -> None:
        """Begin to use another number of processors, as a user asks."""
        self.check_size(processors)
        if processors != manifest.processor_count or self._wanted_processors is not None:
            self._wanted_processors = processors

    def _ask(self, suggestions: Suggestions, snapshot: PlacementSnapshot) -> Decision:
        decision = self.relocation.request(suggestions, snapshot)
        self._asked = replace(
            decision,
            begun=(*self._asked.begun, *decision.begun),
            refused=(*self._asked.refused, *decision.refused),
        )
        return decision

    def _snapshot(self, manifest: Manifest, processors: int) -> PlacementSnapshot:
        budgets = {processor: self._config.budget_of(processor) for processor in range(processors)}
        return self.statistics.snapshot(manifest, budgets, self.relocation, self._clock(), self._windows)

    def _decision(self, manifest: Manifest, snapshot: PlacementSnapshot) -> Decision:
        if self._wanted_processors is None:
            decision = self.relocation.decide(snapshot)
            begun, refused = self._asked.begun, self._asked.refused
            return replace(decision, begun=(*begun, *decision.begun), refused=(*refused, *decision.refused))
        if self.relocation.moves or self._wanted_processors > manifest.processor_count:
            return self._asked
        return self._resized(snapshot, self._wanted_processors)

    def _resized(self, snapshot: PlacementSnapshot, wanted: int) -> Decision:
        """Moves after which only the first processors have groups; what has no room there goes to disk."""
        decision = self.relocation.request(spread_groups(snapshot, range(wanted), "resize"), snapshot)
        if wanted == len(snapshot.processors):
            self._wanted_processors = None
        refused = [one.suggestion for one in decision.refused if isinstance(one.suggestion, Move)]
        there = group_set(one.group for one in snapshot.groups if one.resident_bytes)
        homeless = tuple(
            ForcedSpill(move.sender, move.groups & there, move.bytes, "resize")
            for move in refused
            if move.sender >= wanted and move.groups & there
        )
        return replace(decision, spills=homeless)

    def _processors(self, manifest: Manifest) -> int:
        """How many there are in the next epoch; one that is to go stays until it has no group any more."""
        count, wanted = manifest.processor_count, self._wanted_processors
        if wanted is None:
            return count
        return max(wanted, 1 + max(manifest.placement)) if wanted < count else wanted

    def _evictions(
        self,
        manifest: Manifest,
        resident: dict[int, int],
        relieved: frozenset[int],
        pushed: Sequence[Spill],
        *,
        forced: bool,
    ) -> Change:
        """What leaves memory, and what comes back; `pushed` is what has to leave although there is room.

        Under rotation, and where an operator needs its groups whole, a group is suspended, not spilled.
        """
        moving = self.relocation.moving
        last_resort = moving if self.rotation is None else moving | manifest.waiting_groups
        spills = self.spill.decide(manifest, resident, last_resort, relieved)
        chosen = union(spill.groups for spill in spills)
        spills += [spill for spill in pushed if not spill.groups & chosen]
        if self.rotation is not None:
            closing = range(self._wanted_processors or manifest.processor_count, manifest.processor_count)
            swaps, large = self.rotation.decide(manifest, spills, resident, forced=forced, closing=closing)
            return Change(tuple(large), tuple(swaps))
        left = rotation_ended(manifest, limited=self._config.budgets is not None and self._splittable)
        if not self._splittable:
            return replace(left, swaps=(*left.swaps, *(suspension(spill) for spill in spills)))
        return replace(left, spills=(*spills, *left.spills))

    def _resident_after(self, step: RelocationStep) -> dict[int, int]:
        """The memory of each processor once those that groups leave have freed it.

        A receiver that has to make room counts what is to come as if it were there.
        """
        resident = dict(self.statistics.resident_bytes)
        for one in self._going(step):
            if one.move.makes_room:
                resident[one.move.receiver] = resident.get(one.move.receiver, 0) + one.left_bytes
        for one in step.completed:
            sender = one.move.sender
            resident[sender] = max(0, resident.get(sender, 0) - one.move.bytes)
        return resident

    def _incoming(self, manifest: Manifest, step: RelocationStep) -> dict[int, tuple[Run, ...]]:
        loads = {load.number: load.bytes for load in step.loads}
        incoming: dict[int, tuple[Run, ...]] = {}
        for one in self._going(step):
            loaded = one.loaded_bytes + loads.get(one.number, 0)
            runs = incoming_runs(manifest.runs.values(), one, loaded)
            incoming[one.move.receiver] = (*incoming.get(one.move.receiver, ()), *runs)
        return incoming

    def _given_up(self, step: RelocationStep) -> dict[int, GroupSet]:
        receivers = {one.number: one.move.receiver for one in self.relocation.moves}
        given_up: dict[int, GroupSet] = {}
        for one in step.abandoned:
            receiver = receivers[one.number]
            given_up[receiver] = given_up.get(receiver, 0) | one.groups
        return given_up

    def _senders(self, step: RelocationStep) -> frozenset[int]:
        return frozenset(one.move.sender for one in self._going(step))

    def _going(self, step: RelocationStep) -> list[MoveInProgress]:
        """The moves that are not through after this step."""
        ended = {one.number for one in step.completed} | {one.number for one in step.abandoned}
        return [one for one in self.relocation.moves if one.number not in ended]


def _spill(spill: ForcedSpill, snapshot: PlacementSnapshot) -> Spill:
    resident = snapshot.processor(spill.processor).resident_bytes
    return Spill(spill.processor, spill.groups, spill.bytes, resident, spill.reason)
