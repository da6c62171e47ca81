"""How much input the next epoch takes: little at first, then as much as takes a few seconds.

An epoch has a fixed cost, so large ones are faster, and their results come later. While there is a backlog,
epochs grow up to fourfold each time until one takes `BACKLOG_SECONDS`: the first results come early, and the
rest is read in large epochs. (Rows per second would be the wrong guide: in a join without windows each row
meets more state than the one before.) A live query takes everything that is there, up to what it can do
within the latency goal; if it falls behind by several such epochs, it is in a backlog, too. The upper bound
comes from the memory and from the rows that an epoch may have.

Pure: seconds are measured by whoever calls. Sizes are a wish; files are never split.
"""

from dataclasses import dataclass, replace

FIRST_ROWS = 65_536
"""Of the first epoch: a tenth of a second of work on one core."""
LEAST_ROWS = 1_024
BACKLOG_SECONDS = 2.0
"""What an epoch of a backlog is to take; results of a row wait for no longer than about that."""
STEP = 4.0
"""How much larger or smaller the next epoch of a backlog is at most."""
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


@dataclass(frozen=True, slots=True)
class EpochSize:
    """The size of the next epoch, and what is known from those before."""

    rows: int
    live_rows: int = 0
    """What fits the latency goal; 0: not known."""

    def wanted(self, backlog_rows: float, *, live: bool) -> int:
        """The rows of the next epoch, if so many wait."""
        if live and self.live_rows and backlog_rows <= BEHIND_EPOCHS * self.live_rows:
            return self.live_rows
        return self.rows


def first_size(limits: SizeLimits) -> EpochSize:
    return EpochSize(max(1, min(limits.first_rows, limits.most_rows)))


def next_size(size: EpochSize, wanted: int, epoch: MeasuredEpoch, limits: SizeLimits) -> EpochSize:
    """The size after an epoch that was to have `wanted` rows."""
    if epoch.rows <= 0:
        return size
    known = replace(size, live_rows=_live_rows(size, wanted, epoch, limits))
    if wanted != size.rows or epoch.rows < FULL * wanted:
        return known
    factor = min(STEP, max(1 / STEP, BACKLOG_SECONDS / max(epoch.seconds, 1e-9)))
    return replace(known, rows=_bounded(int(max(size.rows, epoch.rows) * factor), limits))


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
