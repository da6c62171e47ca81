"""Rotation: groups that do not fit into memory take turns in it, each with the input that waited for it.

A suspended group has its state on disk, in one generation, and its input parked. It misses no result: when
its turn comes, its state is read back and the parked input is probed. That costs a swap and delays results,
but leaves nothing for a clean-up, for which unbounded input has no end.

A turn takes place every `gap` seconds, on all processors together or on each by its own clock
(`policy/turns`). Without a given gap, the gap is as long as the last swap took, so that swaps take about half
of the time.

What waits is bounded: while more than `backlog_bytes` of input wait on a processor, every epoch begins with a
turn there. As many groups come back as fit, those with the most waiting input first, and whoever brings input
holds it back (`is_behind`).
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spillway.manager.budget import Budgets
from spillway.manager.clock import Clock
from spillway.manager.pending_queue import suspended_input
from spillway.manager.spill import Spill
from spillway.model import GroupNumbers, GroupSet, group_set, members, placed_on
from spillway.policy import GROUP, SHARE
from spillway.state.log import Manifest


@dataclass(frozen=True, slots=True)
class Swap:
    """What changes places on one processor, as the journal records it."""

    processor: int
    suspended: GroupNumbers
    resumed: GroupNumbers
    suspended_bytes: int
    resumed_bytes: int
    reason: str


def suspension(spill: Spill) -> Swap:
    """Suspend what would be spilled."""
    return Swap(spill.processor, spill.groups, 0, spill.bytes, 0, spill.reason)


def rotation_ended(manifest: Manifest, *, limited: bool) -> tuple[list[Swap], list[Spill]]:
    """What becomes of groups that an earlier run with rotation left suspended.

    Their rows are on disk already. With a memory limit that is a generation that ended; without, they are
    read back.
    """
    spills, swaps = [], []
    for processor in sorted(set(manifest.placement)):
        mine = manifest.suspended & placed_on(manifest.placement, processor)
        there = group_set(g for g in members(mine) if manifest.groups[g].rows) if limited else 0
        size = _bytes(manifest, members(mine))
        if there:
            spills.append(Spill(processor, there, size, 0, "rotation is off"))
        if mine:
            swaps.append(Swap(processor, 0, mine, 0, 0 if limited else size, "rotation is off"))
    return swaps, spills


@dataclass(slots=True)
class RotationManager:
    budgets: Budgets
    clock: Clock
    share: float = 0.3
    """How much of the memory for state one swap exchanges, in turns by share."""
    gap_seconds: float | None = None
    turns: str = SHARE
    backlog_bytes: int | None = None
    """How much input may wait for suspended groups of a processor; None: the budget says."""
    splittable: bool = True
    """Whether a group may be spilled if it is larger than the memory; otherwise it comes back alone."""
    fill_share: float = 0.8
    """How much of the memory for state a turn may fill, waiting input included; the rest is for new input."""
    _activated: dict[int, float] = field(default_factory=dict)
    """Per processor, when its last swap ended, and how long that took."""
    _took: dict[int, float] = field(default_factory=dict)
    _resumed_at: dict[int, int] = field(default_factory=dict)

    def decide(
        self,
        manifest: Manifest,
        victims: Sequence[Spill],
        resident: Mapping[int, int],
        *,
        forced: bool,
        closing: Container[int] = (),
    ) -> tuple[list[Swap], list[Spill]]:
        """The swaps that the next epoch begins with, and what has to be spilled nevertheless.

        Only a group that is larger than the memory for state is spilled: it does not fit as a whole. Where
        the operator needs its groups whole, that group is not spilled either.
        Processors that are `closing` have no turns: their groups are about to leave.
        """
        swaps, spills = [], []
        for processor in sorted(set(manifest.placement)):
            mine = placed_on(manifest.placement, processor)
            out: list[int] = []
            reasons = []
            for victim in (spill for spill in victims if spill.processor == processor):
                large = self._larger_than_memory(manifest, processor, victim.groups)
                out += [group for group in members(victim.groups) if not large >> group & 1]
                reasons.append(victim.reason)
                if large:
                    size = _bytes(manifest, members(large))
                    spills.append(Spill(processor, large, size, victim.resident_bytes, victim.reason))
            never = self._larger_than_memory(manifest, processor, manifest.suspended & mine)
            if never:  # its rows are on disk already: a generation that has ended
                reason = "larger than memory"
                spills.append(Spill(processor, never, _bytes(manifest, members(never)), 0, reason))
                swaps.append(Swap(processor, 0, never, 0, 0, reason))
            behind = self._is_behind(manifest, processor)
            due = (forced or behind or self._gap_is_over(processor)) and processor not in closing
            candidates = manifest.suspended & mine & ~never
            back: list[int] = []
            if due:
                memory = resident.get(processor, 0)
                back = self._exchange(manifest, processor, candidates, out, memory, behind=behind)
            if out or back:
                reason = "; ".join([*reasons, *self._turn(manifest, processor, back, behind=behind)])
                sizes = _bytes(manifest, out), _bytes(manifest, back)
                swaps.append(Swap(processor, group_set(out), group_set(back), *sizes, reason))
        return swaps, spills

    def observe(self, epoch: int, swaps: Iterable[Swap], seconds: Mapping[int, float]) -> None:
        """Take in that an epoch began with these swaps, and how long they took on each processor."""
        for swap in swaps:
            for group in members(swap.resumed):
                self._resumed_at[group] = epoch
            if swap.resumed_bytes:
                self._took[swap.processor] = seconds.get(swap.processor, 0.0)
                self._activated[swap.processor] = self.clock.seconds()

    def is_behind(self, manifest: Manifest) -> bool:
        """Whether too much waits on some processor, so that new input should wait."""
        processors = sorted(set(manifest.placement)) if manifest.suspended else ()
        return any(self._is_behind(manifest, processor) for processor in processors)

    def _is_behind(self, manifest: Manifest, processor: int) -> bool:
        return self.waiting_bytes(manifest, processor) > self.backlog_limit(processor)

    def backlog_limit(self, processor: int) -> int:
        return self.budgets.of(processor).backlog_bytes if self.backlog_bytes is None else self.backlog_bytes

    def waiting_bytes(self, manifest: Manifest, processor: int) -> int:
        """Input that waits for suspended groups of the processor and could be probed."""
        return sum(size for _, size in suspended_input(manifest, processor).values())

    def _gap_is_over(self, processor: int) -> bool:
        clocks = {processor} & set(self._activated) if self.turns == GROUP else self._activated
        ended = max((self._activated[number] for number in clocks), default=float("-inf"))
        took = max((self._took[number] for number in clocks), default=0.0)
        return self.clock.seconds() - ended >= (took if self.gap_seconds is None else self.gap_seconds)

    def _turn(
        self, manifest: Manifest, processor: int, back: Sequence[int], *, behind: bool
    ) -> Iterable[str]:
        """Why groups come back, for the journal."""
        limit = self.budgets.of(processor).state_bytes
        if any(manifest.groups[group].bytes > limit for group in back):
            yield "turn of a group larger than memory"
        elif back:
            yield "turn, too much waits" if behind else "turn"

    def _larger_than_memory(self, manifest: Manifest, processor: int, groups: GroupSet) -> GroupSet:
        if not self.splittable:
            return 0
        limit = self.budgets.of(processor).state_bytes
        return group_set(group for group in members(groups) if manifest.groups[group].bytes > limit)

    def _exchange(
        self,
        manifest: Manifest,
        processor: int,
        candidates: GroupSet,
        out: list[int],
        resident: int,
        *,
        behind: bool,
    ) -> list[int]:
        """Groups whose turn has come; `out` is extended by those that make room for them."""
        groups, waiting = manifest.groups, manifest.waiting_groups
        input_ = suspended_input(manifest, processor)
        inside = group_set(g for g, state in groups.items() if state.rows) & ~manifest.suspended
        inside &= placed_on(manifest.placement, processor)
        stay = inside & (waiting | manifest.mid_row_groups) & ~group_set(out)
        leave = sorted(
            members(inside & ~stay & ~group_set(out)), key=lambda g: (self._resumed_at.get(g, -1), g)
        )
        state_bytes = self.budgets.of(processor).state_bytes
        # Images take whole pages, so more than their rows.
        scale = max(1.0, resident / max(1, _bytes(manifest, members(inside))))
        room = state_bytes * self.fill_share - resident + scale * _bytes(manifest, out)

        def urgency(group: int) -> tuple[float, int, int]:
            """Groups that waited longest come first; while too much waits, the amount counts as well."""
            age = manifest.sequence + 1 - groups[group].active_epoch
            return (-input_[group][1] * age if behind else 0.0, groups[group].active_epoch, group)

        most = state_bytes * (1.0 if behind else self.share)
        back: list[int] = []
        taken = 0  # bytes
        for group in sorted(members(candidates & group_set(input_)), key=urgency):
            size = groups[group].bytes
            if back and (self.turns == GROUP or taken + size > most):
                break
            needed = scale * (size + input_[group][1])
            while room < needed and leave:
                room += scale * groups[leave[0]].bytes
                out.append(leave.pop(0))
            if room < needed and (back or stay):  # alone in memory, a group of any size may come
                break
            back.append(group)
            taken += size
            room -= needed
        return back


def _bytes(manifest: Manifest, groups: Iterable[int]) -> int:
    return sum(manifest.groups[group].bytes for group in groups)
