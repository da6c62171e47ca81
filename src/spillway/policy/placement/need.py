"""How much state a query will have (M_query in Liu's dissertation, 6.3), to compare its memory with. Pure.

State so far is known; what is still to come is estimated from the input. With windows, state stops growing
once they are full. With a known number of rows, state grows with the rows. With neither, half of the input is
assumed to be read: with input that never ends no number would be right.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of its input a query has read."""

    taken_rows: int = 0
    """Rows of all inputs so far."""
    passed_seconds: float = 0.0
    """Of event time, since the oldest row in state."""
    window_seconds: float | None = None
    """How long rows stay at most, with their lateness; None: some stay forever."""


MOST_BYTES = 1e18
"""After a moment of event time an estimate may have no bound; more than this no cluster has."""


def estimated_need(state_bytes: int, progress: Progress, input_rows: int | None = None) -> int:
    """All state, in memory and on disk, that the query will have; `input_rows` if their number is known."""
    factors = []
    if progress.window_seconds is not None and progress.passed_seconds > 0:
        factors.append(max(1.0, progress.window_seconds / progress.passed_seconds))
    if input_rows is not None and progress.taken_rows > 0:
        factors.append(max(1.0, input_rows / progress.taken_rows))
    return int(min(state_bytes * min(factors, default=2.0), MOST_BYTES))
