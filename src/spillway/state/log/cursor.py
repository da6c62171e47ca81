"""How far the clean-up of a batch of groups has come.

Clean-up goes through the parts of the groups' hash ranges, in each through the generations, in each through
the terms (see `cleanup`), in each through the driving rows; `emitted` results of the next row are out.
The order is fixed, so the cursor is all that a restart needs.
"""

from dataclasses import dataclass

from spillway.model import GroupSet, from_hex, to_hex


@dataclass(frozen=True, slots=True)
class Cursor:
    groups: GroupSet
    """The groups that are cleaned up together."""
    restore: bool
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

    def to_json(self) -> list[object]:
        cut = [int(self.restore), self.parts, self.piece_bytes]
        return [to_hex(self.groups), *cut, self.part, self.generation, self.term, self.row, self.emitted]

    @staticmethod
    def from_json(fields: list[object]) -> "Cursor":
        groups, restore, *place = fields
        return Cursor(from_hex(str(groups)), bool(restore), *(int(str(number)) for number in place))
