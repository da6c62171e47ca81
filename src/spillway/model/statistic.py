"""A statistic over the rows of a key that precede a row: which function, of what, over which frame."""

from dataclasses import dataclass
from typing import Literal

Function = Literal["count", "sum", "avg", "min", "max", "stddev"]


@dataclass(frozen=True, slots=True)
class Frame:
    """From a number of rows, or of microseconds, before a row up to the row itself.

    A frame of time has all rows of the row's own event time in it, also those that come after it in order.
    """

    kind: Literal["rows", "range"]
    preceding: int

    @property
    def rows(self) -> int:
        """How many rows before a row are in its frame at most; 0 for a frame of time."""
        return self.preceding if self.kind == "rows" else 0


@dataclass(frozen=True, slots=True)
class Statistic:
    function: Function
    argument: int | None
    """The state column; None counts rows."""
    frame: Frame


def kept_rows(statistics: tuple[Statistic, ...]) -> int:
    """How many of the last rows of a key later rows may look back at, by number."""
    return max((statistic.frame.rows for statistic in statistics), default=0)


def kept_range_us(statistics: tuple[Statistic, ...]) -> int | None:
    """How far later rows may look back in time; None where no frame goes by time."""
    ranges = [statistic.frame.preceding for statistic in statistics if statistic.frame.kind == "range"]
    return max(ranges, default=None)
