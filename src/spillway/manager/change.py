"""What changes between two epochs: groups that leave memory or come back, and groups that move."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.manager.relocation import Relocation
from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model import GroupSet, union


@dataclass(frozen=True, slots=True)
class Change:
    relocation: Relocation
    """It has the manifest that the epoch begins with."""
    spills: tuple[Spill, ...] = ()
    swaps: tuple[Swap, ...] = ()
    quotas: Mapping[int, int] = field(default_factory=dict)
    """Rows that slow processors take in at most."""
    given_up: GroupSet = 0
    """Groups that leave memory for a clean-up, whose generation ends like that of spilled ones."""

    @property
    def spilled(self) -> GroupSet:
        """Groups whose generation ends."""
        return union(spill.groups for spill in self.spills) | self.given_up

    @property
    def leaving(self) -> GroupSet:
        """Groups whose memory is given back."""
        return self.spilled | union(swap.suspended for swap in self.swaps)

    @property
    def suspended(self) -> GroupSet:
        """The suspended groups after the change."""
        resumed = union(swap.resumed for swap in self.swaps)
        return (self.relocation.manifest.suspended | union(s.suspended for s in self.swaps)) & ~resumed
