"""How far the clean-up of a batch of groups has come.

Clean-up goes through the parts of the groups' hash ranges, in each through the generations, in each through
the terms (see `cleanup`), in each through the driving rows; `emitted` results of the next row are out.
The order is fixed, so the cursor is all that a restart needs.
"""

from dataclasses import dataclass
from typing import Annotated

from spillway.model import GroupSet, WrittenAs, listed


@listed()
@dataclass(frozen=True, slots=True)
class Cursor:
    groups: GroupSet
    """The groups that are cleaned up together."""
    restore: Annotated[bool, WrittenAs(int, int, bool)]
    """Whether they return to memory afterwards, as one generation; otherwise they stay on disk."""
    parts: int
    """Into how many parts a group's hash range is cut, so that one fits the budget."""
    piece_bytes: int = 1 << 20
    """How much of a generation is copied to drive probes at a time; it decides the order of driving rows."""
    part: int = 0
    generation: int = 1
    """The generation that is being merged into the earlier ones."""
    term: int = 0
    row: int = 0
    emitted: int = 0

    def at(self, part: int, generation: int = 1, term: int = 0) -> "Cursor":
        """The beginning of a term of the same batch."""
        return Cursor(self.groups, self.restore, self.parts, self.piece_bytes, part, generation, term)
