"""When files arrive, and how many rows each has: a pure function of the rate.

A drop is one file of each stream. Drops come at a fixed interval; those of the first `warm_seconds` warm up
the query and are not counted. Invariant: a drop is due at a time that does not depend on how late an earlier
one was, so a stalled writer catches up instead of lowering the rate. Known limit: a file has a whole number
of rows, so the rate is met up to one row per file; `rate` is the rate that comes out.
"""

import math
from dataclasses import dataclass

from spillway.errors import JobError

MIN_RATE, MAX_RATE = 100, 1_000_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """`rows_per_file` rows of each of `streams` streams, every `interval_seconds`."""

    streams: int
    rows_per_file: int
    interval_seconds: float
    warm_drops: int
    drops: int

    @classmethod
    def at_rate(
        cls, rate: int, *, streams: int, interval_seconds: float, warm_seconds: float, seconds: float
    ) -> "Schedule":
        """The schedule for `rate` rows per second over all streams together."""
        if not MIN_RATE <= rate <= MAX_RATE:
            raise JobError(f"bench latency: rate {rate}: use {MIN_RATE} to {MAX_RATE} rows per second")
        warm_drops = math.ceil(warm_seconds / interval_seconds)
        counted = max(1, math.ceil(seconds / interval_seconds))
        rows_per_file = max(1, round(rate * interval_seconds / streams))
        return cls(streams, rows_per_file, interval_seconds, warm_drops, warm_drops + counted)

    @property
    def rate(self) -> float:
        """Rows per second over all streams."""
        return self.rows_per_file * self.streams / self.interval_seconds

    @property
    def rows_per_stream(self) -> int:
        return self.drops * self.rows_per_file

    @property
    def seconds(self) -> float:
        """From the first drop to the last."""
        return (self.drops - 1) * self.interval_seconds

    def drop_of(self, row_id: int) -> int:
        """The drop that brings a row."""
        return row_id // self.rows_per_file
