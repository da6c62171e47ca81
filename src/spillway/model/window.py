"""The sliding time window of one input of a join."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The event time of an input, and how far back its rows reach."""

    column: int
    """The state column with the event time in microseconds."""
    range_us: int | None
    """None: rows of this input never expire."""
    lateness_us: int
    """How much older than the youngest a row may arrive."""
