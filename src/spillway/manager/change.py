"""What changes between two epochs: groups that leave memory, and groups that come back."""

from dataclasses import dataclass

from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model.group_set import GroupSet, union


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
