"""Rotation: groups that do not fit into memory take turns in it, each with the input that waited for it.

A suspended group has its state on disk, in one generation, and its input parked. So it misses nothing: when
its turn comes, its state is read back and the parked input is probed. That costs a swap and lets results
wait, but never leaves work for a clean-up, which unbounded input has no end to put it at.
A swap takes place every `gap` seconds; unless told, as often as the last swap took long, so that about half
of the time goes to swapping.
"""

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spillway.manager.budget import Budgets
from spillway.manager.spill import Spill
from spillway.model.group_set import GroupSet, group_set, members, placed_on, union
from spillway.state.manifest import Manifest

FILLED = 0.6
"""How much of the memory for state a turn may fill; the rest is for the input that waited."""


@dataclass(frozen=True, slots=True)
class Swap:
    """What changes places on one processor, as the journal records it."""

    processor: int
    suspended: GroupSet
    resumed: GroupSet
    suspended_bytes: int
    resumed_bytes: int
    reason: str


def suspension(spill: Spill) -> Swap:
    """What would be spilled is suspended instead."""
    return Swap(spill.processor, spill.groups, 0, spill.bytes, 0, spill.reason)


@dataclass(slots=True)
class RotationManager:
    budgets: Budgets
    share: float = 0.3
    """How much of the memory for state one swap exchanges."""
    gap_seconds: float | None = None
    splittable: bool = True
    """Whether a group may be spilled if it is larger than the memory; otherwise it comes back alone."""
    clock: Callable[[], float] = time.monotonic
    _ended: float = field(default=float("-inf"))
    """When the last swap was through."""
    _took: float = 0.0
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
        """The swaps that the next epoch begins with, and the victims that have to be spilled all the same.

        Only a group that is larger than the memory for state is spilled: it cannot be in memory as a whole.
        Where the operator needs its groups whole, not even that one is.
        No group's turn comes on processors that are `closing`: their groups are about to leave.
        """
        gap = self._took if self.gap_seconds is None else self.gap_seconds
        due = forced or self.clock() - self._ended >= gap
        swaps, spills = [], []
        for processor in sorted(set(manifest.placement)):
            out: list[int] = []
            reasons = []
            for victim in (one for one in victims if one.processor == processor):
                large = self._larger_than_memory(manifest, processor, victim.groups)
                out += [group for group in members(victim.groups) if not large >> group & 1]
                reasons.append(victim.reason)
                if large:
                    size = sum(manifest.groups[group].bytes for group in members(large))
                    spills.append(Spill(processor, large, size, victim.resident_bytes, victim.reason))
            turns = due and processor not in closing
            back = self._exchange(manifest, processor, out, resident.get(processor, 0)) if turns else []
            if out or back:
                sizes = [sum(manifest.groups[group].bytes for group in of) for of in (out, back)]
                reason = "; ".join([*reasons, *self._turn(manifest, processor, back)])
                swaps.append(Swap(processor, group_set(out), group_set(back), sizes[0], sizes[1], reason))
        return swaps, spills

    def observe(self, epoch: int, swaps: Iterable[Swap], seconds: float) -> None:
        """Take in that an epoch began with these swaps, and what they took."""
        resumed = union(swap.resumed for swap in swaps)
        for group in members(resumed):
            self._resumed_at[group] = epoch
        if resumed:
            self._took = seconds
            self._ended = self.clock()

    def _turn(self, manifest: Manifest, processor: int, back: Sequence[int]) -> list[str]:
        """What the journal says of groups that come back."""
        limit = self.budgets.of(processor).state_bytes
        large = any(manifest.groups[group].bytes > limit for group in back)
        return ["turn of a group larger than memory"] if large else ["turn"] if back else []

    def _larger_than_memory(self, manifest: Manifest, processor: int, groups: GroupSet) -> GroupSet:
        if not self.splittable:
            return 0
        limit = self.budgets.of(processor).state_bytes
        return group_set(group for group in members(groups) if manifest.groups[group].bytes > limit)

    def _exchange(self, manifest: Manifest, processor: int, out: list[int], resident: int) -> list[int]:
        """Groups whose turn has come; `out` is extended by those that make room for them."""
        groups, waiting = manifest.groups, manifest.waiting_groups
        mine = placed_on(manifest.placement, processor)
        order = sorted(
            members(manifest.suspended & waiting & mine), key=lambda g: (groups[g].active_epoch, g)
        )
        inside = group_set(g for g, state in groups.items() if state.rows) & mine & ~manifest.suspended
        stay = inside & (waiting | manifest.unfinished_groups) & ~group_set(out)
        leave = sorted(
            members(inside & ~stay & ~group_set(out)), key=lambda g: (self._resumed_at.get(g, -1), g)
        )
        state_bytes = self.budgets.of(processor).state_bytes
        room = int(state_bytes * FILLED) - resident + sum(groups[group].bytes for group in out)
        back: list[int] = []
        taken = 0  # bytes
        for group in order:
            size = groups[group].bytes
            if back and taken + size > state_bytes * self.share:
                break
            while room < size and leave:
                room += groups[leave[0]].bytes
                out.append(leave.pop(0))
            if room < size and (back or stay):  # alone in memory, a group may come whatever its size
                break
            back.append(group)
            taken += size
            room -= size
        return back
