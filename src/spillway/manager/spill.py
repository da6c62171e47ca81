"""Decides, between two epochs, which groups leave memory: when, how much, and by policy which.

A processor whose state has grown beyond its part of the budget spills a share of it. A spill ends the
generations of the chosen groups: the next manifest record says so, and the processor frees their memory.
Nothing is written, because the rows are durable since the epoch that probed them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType

from spillway.errors import BudgetError
from spillway.manager.budget import Budgets
from spillway.model import GroupNumbers, GroupSet, group_set, members
from spillway.policy.spill import INACTIVE_EPOCHS, NO_SPILL, SPILL_POLICIES, GroupStatistics, SpillSnapshot
from spillway.state.log import Manifest

GROWTH_SLACK = 1.2
"""Rows that were freed leave parts of pages behind, so a spill frees less than it says."""
NO_GROWTH: Mapping[int, int] = MappingProxyType({})
HISTORY_WEIGHT = 0.7
"""By default, what the results of an epoch count for in the next, for `recent-history`."""


@dataclass(frozen=True, slots=True)
class Spill:
    """One processor's spill, as the journal records it."""

    processor: int
    groups: GroupNumbers
    bytes: int
    resident_bytes: int
    """State of the processor before the spill."""
    reason: str


@dataclass(slots=True)
class SpillManager:
    budgets: Budgets | None
    policy: str = "least-productive"
    share: float = 0.1
    ahead_share: float = 1 / 3
    heights: Sequence[int] = ()
    """Per group, how many operators are between it and the results of the view; none: all give results."""
    inactive_epochs: int = INACTIVE_EPOCHS
    history_weight: float = HISTORY_WEIGHT
    random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - victims, not secrets
    _recent: dict[int, float] = field(default_factory=dict)

    def observe(self, group_results: Mapping[int, int], begun: GroupSet = 0, ended: GroupSet = 0) -> None:
        """Take in the results per group of an epoch.

        A history covers one generation: it starts again for groups whose generation has `begun` with this
        epoch, and is dropped for groups whose generation `ended` with it.
        """
        for group in set(self._recent) | set(group_results):
            before = 0.0 if begun >> group & 1 else self._recent.get(group, 0.0) * self.history_weight
            self._recent[group] = before + group_results.get(group, 0)
        for group in members(ended):
            self._recent.pop(group, None)

    def decide(
        self,
        manifest: Manifest,
        resident_bytes: Mapping[int, int],
        last_resort: GroupSet = 0,
        relieved: frozenset[int] = frozenset(),
        pinned: GroupSet = 0,
        growth: Mapping[int, int] = NO_GROWTH,
    ) -> list[Spill]:
        """The spills at the start of the next epoch, which is expected to add `growth` to state.

        Groups of `last_resort` are chosen only if the others do not free enough. Groups that are `pinned`
        stay: they are being cleaned up. Processors that are `relieved` do not spill: groups are about to
        leave them.
        """
        if self.budgets is None:
            return []
        spills = []
        for processor in sorted(set(manifest.placement) - relieved):
            budget = self.budgets.of(processor)
            groups = self._statistics(manifest, processor, pinned)
            known = sum(group.bytes for group in groups)
            resident = max(resident_bytes.get(processor, 0), known)
            ahead = self._ahead_bytes(growth.get(processor, 0), budget.state_bytes)
            needed = resident - budget.state_bytes + (0 if self.policy == NO_SPILL else ahead)
            if needed <= 0 or not groups:
                continue
            if self.policy == NO_SPILL:
                raise BudgetError(
                    f"processor {processor} holds {resident} bytes of state, its budget of "
                    f"{budget.memory_bytes} leaves {budget.state_bytes} for state, and spill is "
                    '"none"; give more memory, or choose a spill strategy'
                )
            wanted = max(int(known * self.share), needed)
            others = tuple(group for group in groups if not last_resort >> group.group & 1)
            groups = others if sum(group.bytes for group in others) >= wanted else groups
            snapshot = SpillSnapshot(groups, wanted, inactive_epochs=self.inactive_epochs)
            chosen = SPILL_POLICIES[self.policy](snapshot, self.random)
            freed = sum(group.bytes for group in groups if group.group in chosen)
            spills.append(Spill(processor, group_set(chosen), freed, resident, self.policy))
        return spills

    def _ahead_bytes(self, growth: int, state_bytes: int) -> int:
        """What to make room for: all of the growth, or as many equal parts of it as it takes epochs."""
        if not self.ahead_share:
            return 0
        growth = int(growth * GROWTH_SLACK)
        epochs = max(1, math.ceil(growth / (self.ahead_share * state_bytes)))
        return growth // epochs

    def _height(self, group: int) -> int:
        return self.heights[group] if self.heights else 0

    def _statistics(
        self, manifest: Manifest, processor: int, pinned: GroupSet
    ) -> tuple[GroupStatistics, ...]:
        now = manifest.sequence + 1
        pinned |= manifest.mid_row_groups | manifest.suspended
        return tuple(
            GroupStatistics(
                group=group,
                bytes=state.bytes,
                results=state.results,
                age_epochs=now - state.born_epoch,
                idle_epochs=now - state.active_epoch,
                rows=state.rows,
                recent_results=self._recent.get(group, 0.0),
                outputs=state.outputs if self._height(group) else state.results,
                inter_bytes=state.inter_bytes,
                height=self._height(group),
            )
            for group, state in sorted(manifest.groups.items())
            if state.rows and manifest.placement[group] == processor and not pinned >> group & 1
        )
