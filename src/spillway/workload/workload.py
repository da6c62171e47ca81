"""The parameters of a synthetic stream, as the seeds' data generator has them.

Definition (Adapting state-intensive non-blocking queries, 3.4; Run-time operator state spilling, 6.1): a
join value of a class with **join ratio** R appears R times in every **tuple range** of K tuples of a
stream, and the next K tuples repeat the same values. So after n ranges a value has R*n rows in each
stream, and m streams give (R*n)^m results for it; the dissertation (5.2.3) calls R the join rate. A
stream is cut into partitions by join value, and every partition of a class has K / partitions rows per
range and K / (partitions * R) values.

Invariant: parameters that contradict the definition are refused when the value is made, not when rows are.
Known limit: where K / (partitions * R) is not whole, the ratio holds on average over a class's values and
over ranges (neighbouring partitions differ by one value), not for each value in each range.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from spillway.errors import SourceError


@dataclass(frozen=True, slots=True)
class PartitionClass:
    """A share of the partitions whose join values recur at the same ratio."""

    join_ratio: float
    share: Fraction = Fraction(1)
    tuple_range: int | None = None  # of this class alone (dissertation, figure 6.20); absent: the workload's


@dataclass(frozen=True, slots=True)
class Alternation:
    """Arrivals that favour one half of the partitions, then the other.

    The half in favour gets `factor` times the rows of the other; the total rate stays. The seeds' worst case
    is factor 10, first period 300 s, then 600 s each (figures 14-16): hence the first period's own length.
    """

    period_seconds: float
    factor: int
    first_period_seconds: float | None = None  # absent: like all others


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that determines the rows of streams that join on `k`.

    Defaults are those of the seeds' first spill experiment (4.4): 300 partitions, range 30,000, ratio 3, one
    row per 30 ms and stream. Classes take consecutive partitions in the order given; halves are [0, n/2) and
    [n/2, n).
    """

    streams: tuple[str, ...] = ("a", "b", "c")
    tuple_range: int = 30_000
    classes: tuple[PartitionClass, ...] = (PartitionClass(3),)
    partitions: int = 300
    rate_rows_per_second: float = 1000 / 30
    alternation: Alternation | None = None
    width_bytes: int = 40
    plain_keys: bool = False  # k = value * partitions + partition: readable, but spread over all groups
    seed: int = 0
    start: datetime = datetime(2005, 3, 11, 9, 0, tzinfo=UTC)

    def __post_init__(self) -> None:
        _require(bool(self.streams) and all(self.streams), "streams", "name at least one stream")
        _require(len(set(self.streams)) == len(self.streams), "streams", "use each name once")
        _require(self.partitions >= 1, "partitions", "use 1 or more")
        _require(math.isfinite(self.rate_rows_per_second) and self.rate_rows_per_second > 0, "rate",
                 "use more than 0 rows per second")  # fmt: skip
        _require(0 <= self.width_bytes <= 65_536, "width", "use 0 to 65536 bytes")
        _require(0 <= self.seed < 2**64, "seed", "use a number from 0 to 2^64 - 1")
        _require(self.start.tzinfo is not None, "start", "give it a time zone")
        _require(sum(c.share for c in self.classes) == 1, "join ratio",
                 "make the shares of the partitions add up to 1")  # fmt: skip
        for each in self.classes:
            tuple_range = each.tuple_range or self.tuple_range
            _require(math.isfinite(each.join_ratio) and each.join_ratio >= 1, "join ratio", "use 1 or more")
            _require(each.share > 0, "join ratio", "give every class a share above 0")
            _require(
                tuple_range >= self.partitions * each.join_ratio,
                "tuple range",
                f"{tuple_range} is too small for {self.partitions} partitions at join ratio "
                f"{each.join_ratio:g}; use {math.ceil(self.partitions * each.join_ratio)} or more",
            )
        if self.alternation is not None:
            self._check_alternation(self.alternation)

    def _check_alternation(self, alternation: Alternation) -> None:
        _require(alternation.factor >= 1, "alternate", "use a whole factor of 1 or more")
        _require(self.partitions % 2 == 0, "alternate", "use an even number of partitions")
        first_blocks, period_blocks = self.alternation_blocks()
        _require(
            first_blocks >= 1 and period_blocks >= 1,
            "alternate",
            f"a period must last for {self.block_rows} rows or more; lengthen it or raise the rate",
        )

    @property
    def block_rows(self) -> int:
        """Rows after which every partition has had its share: the unit of arrivals."""
        if self.alternation is None:
            return self.partitions
        return self.partitions // 2 * (self.alternation.factor + 1)

    def alternation_blocks(self) -> tuple[int, int]:
        """The first and the later periods of the alternation, in whole blocks."""
        if self.alternation is None:
            return 0, 0
        period_seconds = self.alternation.period_seconds
        first_seconds = self.alternation.first_period_seconds
        blocks_per_second = self.rate_rows_per_second / self.block_rows
        return (
            round((period_seconds if first_seconds is None else first_seconds) * blocks_per_second),
            round(period_seconds * blocks_per_second),
        )

    def class_bounds(self) -> tuple[int, ...]:
        """The first partition of each class, and the number of partitions at the end."""
        bounds, covered = [0], Fraction(0)
        for each in self.classes:
            covered += each.share
            bounds.append(round(covered * self.partitions))
        return tuple(bounds)


def _require(condition: bool, parameter: str, advice: str) -> None:
    if not condition:
        raise SourceError(f"workload: {parameter}: {advice}")
