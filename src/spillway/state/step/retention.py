"""What stays in state when runs are merged: the answer of an operator to the orders of a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spillway.state.rows import EventTimes, Expiry, SortedRows


class Retention(Protocol):
    def retained(self, input_: int, rows: SortedRows, newer: Sequence[SortedRows]) -> SortedRows:
        """The part of some merged rows that stays; `newer` is the younger state of the input."""

    def times(self, input_: int, rows: SortedRows) -> EventTimes | None:
        """What to note of a run that holds these rows."""


@dataclass(frozen=True, slots=True)
class WindowRetention:
    """Rows stay until their window has passed, whatever else is in state."""

    expiry: Expiry
    groups: int

    def retained(
        self,
        input_: int,
        rows: SortedRows,
        newer: Sequence[SortedRows],  # noqa: ARG002 - a window does not look at other rows
    ) -> SortedRows:
        return self.expiry.unexpired(input_, rows, self.groups)

    def times(self, input_: int, rows: SortedRows) -> EventTimes | None:
        return self.expiry.times(input_, rows)
