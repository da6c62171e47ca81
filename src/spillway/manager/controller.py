"""Decides what changes between two epochs: spills, turns, moves, quotas, the number of processors.

It asks each manager for its part and makes the parts fit together: a group that changes its processor is
spilled by the new one, and a processor that moves relieve does not spill. Statistics go in, a change comes
out; clock and budgets are given, and nothing is executed.
"""

from collections.abc import Mapping, Sequence

from spillway.errors import SpillwayError
from spillway.manager.budget import Budgets, budget_of
from spillway.manager.change import Change
from spillway.manager.clock import Clock
from spillway.manager.config import EngineConfig
from spillway.manager.growth import ExpectedGrowth
from spillway.manager.relocation import Decision, PlacementStatistics, Relocation, RelocationManager
from spillway.manager.rotation import RotationManager, Swap, rotation_ended, suspension
from spillway.manager.skew_buffer import quotas
from spillway.manager.spill import NO_GROWTH, Spill, SpillManager
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


class Controller:
    def __init__(
        self,
        config: EngineConfig,
        budgets: Budgets | None,
        clock: Clock,
        *,
        splittable: bool,
        heights: Sequence[int] = (),
        windows: Sequence[Window] = (),
    ) -> None:
        """`splittable`: whether groups may have several generations; those of a statistics view may not.

        `heights` says of each group how many joins are between it and the results, in a tree.
        """
        self._config = config
        self._budgets = budgets
        self._splittable = splittable
        self._clock = clock
        self._windows = windows
        self.spill = SpillManager(
            budgets,
            config.spill,
            config.spill_share,
            config.ahead_share,
            heights=heights,
            inactive_epochs=config.inactive_epochs,
            history_weight=config.history_weight,
        )
        self._growth = ExpectedGrowth()
        self.rotation: RotationManager | None = None
        if (config.rotation or not splittable) and budgets is not None:
            self.rotation = RotationManager(
                budgets,
                clock,
                config.spill_share,
                config.rotation_gap_seconds,
                config.rotation_turns,
                config.rotation_backlog_bytes,
                splittable,
                config.rotation_fill_share,
            )
        self.relocation = RelocationManager(placement_policy(config.adapt, config.policy), config.relocation)
        self.statistics = PlacementStatistics(config.load_signal, config.sampling)

    @property
    def resident_bytes(self) -> dict[int, int]:
        """What each processor had in memory after the last epoch."""
        return self.statistics.resident_bytes

    def room_bytes(self, manifest: Manifest) -> dict[int, int]:
        """How much spilled state may come back to each processor.

        State may always fill a share of the memory for it, and more if it can then stay for some epochs.
        """
        budgets = self._budgets
        if budgets is None or self._config.deferred:
            return {}
        growth = self.statistics.growth_bytes(manifest.placement)
        room = {}
        for processor, resident in self.statistics.resident_bytes.items():
            limit = budgets.of(processor).state_bytes
            allowed = limit * self._config.room_share
            if growth is not None:
                allowed = max(allowed, limit - self._config.lasting_epochs * growth.get(processor, 0.0))
            room[processor] = int(allowed) - resident
        return room

    def is_behind(self, manifest: Manifest) -> bool:
        """Whether too much input waits for suspended groups, so that new input should wait."""
        return self.rotation is not None and self.rotation.is_behind(manifest)

    def started(self, epoch: int) -> None:
        """Take in that this is the first epoch after a start."""
        self.relocation.started_epoch = epoch

    def decide(self, manifest: Manifest, *, arrives: bool, forced: bool) -> Change:
        """What the next epoch begins with; `arrives` if it has input besides what waits, `forced` if
        suspended groups get their turn in any case."""
        snapshot = self._snapshot(manifest)
        relocation = self.relocation.advance(manifest, snapshot, self.statistics.resident_bytes)
        pushed = [_spill(spill, snapshot) for spill in relocation.decision.spills]
        growth = self._growth.expected(relocation.manifest, arrives=arrives)
        swaps, spills = self._evictions(relocation, pushed, growth, forced=forced)
        arrived, config = self.statistics.arrived_rows(), self._config
        limited_rows = quotas(snapshot, arrived, config.buffer_bytes, config.skew)
        return Change(relocation, tuple(spills), tuple(swaps), limited_rows)

    def cleaning(self, manifest: Manifest, cleaned: GroupSet, *, leave: bool) -> Change:
        """An epoch that cleans up some groups. If all else is to `leave` memory, that is for the clean-up."""
        given_up = 0
        if leave and self._budgets is not None:
            stay = cleaned | manifest.mid_row_groups | manifest.suspended | self.relocation.moving
            given_up = group_set(g for g, state in manifest.groups.items() if state.rows) & ~stay
        return Change(self.relocation.hold(manifest), given_up=given_up)

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
        relocation = change.relocation
        self._growth.observe(relocation.manifest, reports, change.suspended)
        self.relocation.observe(relocation, self._clock.seconds())
        if relocation.decision.round_over or relocation.completed:
            self.statistics.restart()
        self.statistics.observe(reports, seconds)

    def rebalance(self, manifest: Manifest) -> Decision:
        """Spread the groups evenly, as a user asks; the moves begin with the next epoch."""
        snapshot = self._snapshot(manifest)
        processors = range(manifest.processor_count)
        return self.relocation.request(spread_groups(snapshot, processors, "on demand"), snapshot)

    def move(self, manifest: Manifest, groups: GroupSet, receiver: int) -> Decision:
        """Move groups to a processor, as a user asks."""
        snapshot = self._snapshot(manifest)
        senders: dict[int, list[int]] = {}
        for group in members(groups):
            if manifest.placement[group] != receiver:
                senders.setdefault(manifest.placement[group], []).append(group)
        sizes = {group.group: group.resident_bytes for group in snapshot.groups}
        moves = tuple(
            Move(group_set(mine), sender, receiver, sum(sizes[group] for group in mine), "on demand")
            for sender, mine in sorted(senders.items())
        )
        return self.relocation.request(Suggestions(moves), snapshot)

    def check_size(self, processors: int) -> None:
        if not 1 <= processors <= self._config.groups:
            raise SpillwayError(
                f"resize({processors}): must be at least 1 and at most groups = {self._config.groups}"
            )

    def resize(self, manifest: Manifest, processors: int) -> None:
        """Begin to use another number of processors, as a user asks."""
        self.check_size(processors)
        if processors != manifest.processor_count or self.relocation.wanted_processors is not None:
            self.relocation.wanted_processors = processors

    def _snapshot(self, manifest: Manifest) -> PlacementSnapshot:
        processors = range(manifest.processor_count)
        budgets = {processor: budget_of(self._budgets, processor) for processor in processors}
        return self.statistics.snapshot(
            manifest, budgets, self.relocation, self._clock.seconds(), self._windows
        )

    def _evictions(
        self, relocation: Relocation, pushed: Sequence[Spill], growth: Mapping[int, int], *, forced: bool
    ) -> tuple[list[Swap], list[Spill]]:
        """What leaves memory and what comes back; `pushed` leaves although there is room.

        Under rotation, and where an operator needs its groups whole, a group is suspended, not spilled.
        """
        manifest, resident = relocation.manifest, relocation.resident_bytes
        moving = self.relocation.moving
        last_resort = moving if self.rotation is None else moving | manifest.waiting_groups
        if self.rotation is not None:
            growth = NO_GROWTH  # what has no room waits for its turn
        spills = self.spill.decide(
            manifest, resident, last_resort, relocation.decision.relieved, growth=growth
        )
        chosen = union(spill.groups for spill in spills)
        spills += [spill for spill in pushed if not spill.groups & chosen]
        if self.rotation is not None:
            count = manifest.processor_count
            closing = range(self.relocation.wanted_processors or count, count)
            return self.rotation.decide(manifest, spills, resident, forced=forced, closing=closing)
        limited = self._budgets is not None and self._splittable
        ended_swaps, ended_spills = rotation_ended(manifest, limited=limited)
        if not self._splittable:
            return [*ended_swaps, *(suspension(spill) for spill in spills)], ended_spills
        return ended_swaps, [*spills, *ended_spills]


def _spill(spill: ForcedSpill, snapshot: PlacementSnapshot) -> Spill:
    resident = snapshot.processor(spill.processor).resident_bytes
    return Spill(spill.processor, spill.groups, spill.bytes, resident, spill.reason)
