"""What changes between two epochs: groups that leave memory, and groups that come back."""

from dataclasses import dataclass

from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model.group_set import GroupSet, group_set, members, placed_on, union
from spillway.state.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Change:
    spills: tuple[Spill, ...] = ()
    swaps: tuple[Swap, ...] = ()

    @property
    def spilled(self) -> GroupSet:
        """Groups whose generation ends."""
        return union(spill.groups for spill in self.spills)

    @property
    def leaving(self) -> GroupSet:
        """Groups whose memory is given back."""
        return self.spilled | union(swap.suspended for swap in self.swaps)

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
