"""How much input the next epoch takes: little at first, more while that makes the query faster.

While there is a backlog, epochs double as long as rows per second grow, so the first results come early and
the rest is read in large epochs. A live query takes everything that is there, up to what it can do within the
latency goal; if it falls behind by several such epochs, it is in a backlog, too. The upper bound comes from
the memory and from the rows that an epoch may have.

Pure: seconds are measured by whoever calls. Sizes are a wish; files are never split.
"""

from dataclasses import dataclass, replace

FIRST_ROWS = 65_536
"""Of the first epoch: a tenth of a second of work on one core."""
LEAST_ROWS = 1_024
GAIN = 1.05
"""Twice the rows must give so many times the rows per second, or the size is large enough."""
MISSES = 2
"""So many epochs in a row must fail to gain: one may have been disturbed."""
FULL = 0.5
"""An epoch with less than this share of the rows that it was to have says nothing about its size."""
SLACK = 1.25
"""Epochs that take so many times the latency goal are made smaller; those far below it larger."""
BEHIND_EPOCHS = 4
"""A live query with more input than this many of its epochs is in a backlog."""


@dataclass(frozen=True, slots=True)
class SizeLimits:
    most_rows: int
    latency_seconds: float
    first_rows: int = FIRST_ROWS


@dataclass(frozen=True, slots=True)
class MeasuredEpoch:
    """What an epoch had, and how long it took until its results were in the sink."""

    rows: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        return self.rows / max(self.seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class EpochSize:
    """The size of the next epoch, and what is known from those before."""

    rows: int
    best_rate: float = 0.0
    """Rows per second, of full epochs."""
    misses: int = 0
    """Epochs in a row that did not gain; -1 when the size is settled."""
    live_rows: int = 0
    """What fits the latency goal; 0: not known."""

    def wanted(self, backlog_rows: float, *, live: bool) -> int:
        """The rows of the next epoch, if so many wait."""
        if live and self.live_rows and backlog_rows <= BEHIND_EPOCHS * self.live_rows:
            return self.live_rows
        return self.rows


SETTLED = -1


def first_size(limits: SizeLimits) -> EpochSize:
    return EpochSize(max(1, min(limits.first_rows, limits.most_rows)))


def next_size(size: EpochSize, wanted: int, epoch: MeasuredEpoch, limits: SizeLimits) -> EpochSize:
    """The size after an epoch that was to have `wanted` rows."""
    if epoch.rows <= 0:
        return size
    known = replace(size, live_rows=_live_rows(size, wanted, epoch, limits))
    if wanted != size.rows or epoch.rows < FULL * wanted or size.misses == SETTLED:
        return known
    rate = epoch.rows_per_second
    if rate >= GAIN * size.best_rate:
        return replace(known, rows=_bounded(2 * size.rows, limits), best_rate=rate, misses=0)
    misses = size.misses + 1
    return replace(known, misses=SETTLED if misses >= MISSES else misses)


def _live_rows(size: EpochSize, wanted: int, epoch: MeasuredEpoch, limits: SizeLimits) -> int:
    before = size.live_rows or wanted
    share = limits.latency_seconds / max(epoch.seconds, 1e-9)
    if share < 1 / SLACK:
        return _bounded(int(min(before, epoch.rows) * max(share, 0.25)), limits)
    if share > SLACK and epoch.rows >= FULL * before:
        return _bounded(int(before * min(share, 2.0)), limits)
    return before


def _bounded(rows: int, limits: SizeLimits) -> int:
    return max(min(rows, limits.most_rows), min(LEAST_ROWS, limits.most_rows), 1)
