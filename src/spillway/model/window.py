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
    derived: bool = False
    """Whether rows are results of another join: then the column has the watermark from which on they can meet
    no other row, none of them is late, and they say nothing about how far their sources are."""
