"""How far the clean-up of a batch of groups has come.

Clean-up goes through the groups by key hash, through the driving rows of each hash in the order of their
runs, and through the combinations of each row in the order of the probe. So the cursor depends on rows only,
not on how many of them fit into memory at a time, and is all that a restart needs, whatever memory that has.
"""

from dataclasses import dataclass
from typing import Annotated

from spillway.model import GroupSet, WrittenAs, listed

FIRST_HASH = -(1 << 63)


@listed()
@dataclass(frozen=True, slots=True)
class Cursor:
    groups: GroupSet
    """The groups that are cleaned up together."""
    restore: Annotated[bool, WrittenAs(int, int, bool)]
    """Whether they return to memory afterwards, as one generation; otherwise they stay on disk."""
    hash: int = FIRST_HASH
    """All smaller hashes are done."""
    row: int = 0
    """Driving rows of this hash that are done."""
    emitted: int = 0
    """Combinations of the next driving row that are done."""

    @property
    def has_begun(self) -> bool:
        return self.hash > FIRST_HASH or self.row > 0 or self.emitted > 0

    def at(self, hash_: int, row: int = 0, emitted: int = 0) -> "Cursor":
        return Cursor(self.groups, self.restore, hash_, row, emitted)
