"""What changes between two epochs: groups that leave memory or come back, and groups that move."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.manager.relocation import Decision, RelocationStep
from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model import GroupSet, group_set, members, placed_on, union
from spillway.state.log import Manifest
from spillway.state.rows import Run


@dataclass(frozen=True, slots=True)
class Change:
    spills: tuple[Spill, ...] = ()
    swaps: tuple[Swap, ...] = ()
    decision: Decision = field(default_factory=Decision)
    step: RelocationStep = field(default_factory=RelocationStep)
    placement: tuple[int, ...] = ()
    """Where the groups are in the next epoch."""
    processors: int = 0
    """How many there are in it."""
    incoming: Mapping[int, tuple[Run, ...]] = field(default_factory=dict)
    """What receivers of moves have of the groups after it, besides their own: runs, `live` reduced."""
    given_up: Mapping[int, GroupSet] = field(default_factory=dict)
    """What receivers have of groups that are not going to move after all."""
    senders: frozenset[int] = frozenset()
    """Processors whose groups are being loaded elsewhere, so that the runs they are in must stay."""
    quotas: Mapping[int, int] = field(default_factory=dict)
    """Rows that slow processors take in at most."""

    @property
    def spilled(self) -> GroupSet:
        """Groups whose generation ends."""
        return union(spill.groups for spill in self.spills)

    @property
    def leaving(self) -> GroupSet:
        """Groups whose memory is given back."""
        return self.spilled | union(swap.suspended for swap in self.swaps)

    def moved_from(self, processor: int) -> GroupSet:
        """Groups that another processor has from this epoch on, or keeps after all."""
        moved = union(one.groups for one in self.step.completed if one.move.sender == processor)
        return moved | self.given_up.get(processor, 0)

    def suspended(self, before: GroupSet) -> GroupSet:
        """The suspended groups after the change."""
        resumed = union(swap.resumed for swap in self.swaps)
        return (before | union(swap.suspended for swap in self.swaps)) & ~resumed


def rotation_ended(manifest: Manifest, *, limited: bool) -> Change:
    """What becomes of groups that an earlier run suspended, when no turn will ever come for them.

    Their rows are on disk already: under a limit that is a generation that ended, else they are read back.
    """
    spills, swaps = [], []
    for processor in sorted(set(manifest.placement)):
        mine = manifest.suspended & placed_on(manifest.placement, processor)
        there = group_set(g for g in members(mine) if manifest.groups[g].rows) if limited else 0
        size = sum(manifest.groups[group].bytes for group in members(mine))
        if there:
            spills.append(Spill(processor, there, size, 0, "rotation is off"))
        if mine:
            swaps.append(Swap(processor, 0, mine, 0, 0 if limited else size, "rotation is off"))
    return Change(tuple(spills), tuple(swaps))
