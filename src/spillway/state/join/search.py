"""The search for hashes in sorted segments: which needles does a segment have rows of, where, and how many?

Most segments have few of the needles: state is much larger than what is probed with it. So a segment's filter
is asked first, a binary search follows for what passes, and only what was found is written down.

Invariant: what is found depends on the live rows of the segments only, not on their filters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spillway.state.rows import LEAST_NEEDLES, Int64Array, SortedRows, group_of, lower_half

MOST_STEPS = 6
"""Rows of a key that are looked at one by one: with two rows per key on average that took a third of the time
of a search, with 20 rows a tenth more."""
LEAST_SETTLED = 1 / 3
"""Another row is looked at if the last one settled this many keys for each that is left."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The needles that one segment has live rows of, and these rows."""

    segment: int
    needles: Int64Array
    """Ascending."""
    lows: Int64Array
    """Where the rows of each begin in the segment."""
    counts: Int64Array

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def renumbered(self, numbers: Int64Array) -> "Hits":
        """With a new number for each needle; needles without one (-1) are left out."""
        needles = numbers[self.needles]
        kept = np.flatnonzero(needles >= 0)
        if len(kept) == len(needles):
            return Hits(self.segment, needles, self.lows, self.counts)
        return Hits(self.segment, needles[kept], self.lows[kept], self.counts[kept])


def search(segments: Sequence[SortedRows], needles: Int64Array, groups: int) -> list[Hits]:
    """The hits of each segment that has any, in the order of the segments; needles ascend and differ."""
    lower = lower_half(needles) if len(needles) >= LEAST_NEEDLES else None
    found = (_hits(number, segment, needles, lower, groups) for number, segment in enumerate(segments))
    return [hits for hits in found if hits is not None]


def rows_per_needle(hits: Sequence[Hits], needles: int) -> Int64Array:
    """How many rows of all segments each needle has."""
    rows = np.zeros(needles, dtype=np.int64)
    for of_segment in hits:
        rows[of_segment.needles] += of_segment.counts
    return rows


def expanded(starts: Int64Array, counts: Int64Array) -> Int64Array:
    """starts[0], starts[0] + 1, ... (counts[0] of them), starts[1], ..."""
    offsets = np.cumsum(counts) - counts
    return np.repeat(starts - offsets, counts) + np.arange(int(counts.sum()))


def _hits(
    number: int, segment: SortedRows, needles: Int64Array, lower: Int64Array | None, groups: int
) -> Hits | None:
    if not segment.rows:
        return None
    candidates, wanted = None, needles
    if lower is not None and segment.filter is not None:
        candidates = segment.filter.candidates(lower)
        wanted = needles[candidates]
    lows = np.searchsorted(segment.hashes, wanted)
    found = segment.hashes.take(lows, mode="clip") == wanted
    if segment.live is not None:
        found &= segment.live[group_of(wanted, groups)]
    hits = np.flatnonzero(found)
    if not len(hits):
        return None
    lows, wanted = lows[hits], wanted[hits]
    counts = _counts(segment.hashes, wanted, lows)
    return Hits(number, hits if candidates is None else candidates[hits], lows, counts)


def _counts(hashes: Int64Array, wanted: Int64Array, lows: Int64Array) -> Int64Array:
    """How many rows each of the wanted hashes has, the first of which is known.

    Most keys have few rows, so the next ones are looked at, as long as that settles many; for the keys that
    are left then the last row is searched for.
    """
    counts = np.ones(len(lows), dtype=np.int64)
    open_ = np.arange(len(lows))
    for step in range(1, MOST_STEPS):
        # Behind the last row the last one is seen again: at worst its key is searched for.
        same = np.flatnonzero(hashes.take(lows + step, mode="clip") == wanted)
        settled = len(open_) - len(same)
        open_, lows, wanted = open_[same], lows[same], wanted[same]
        counts[open_] = step + 1
        if settled < LEAST_SETTLED * len(same):
            break
    if len(open_):
        counts[open_] = np.searchsorted(hashes, wanted, side="right") - lows
    return counts


def first_of_each(hashes: Int64Array) -> Int64Array:
    """The position of the first row of each distinct hash of a sorted array."""
    if not len(hashes):
        return np.empty(0, dtype=np.int64)
    return np.concatenate(([0], np.flatnonzero(hashes[1:] != hashes[:-1]) + 1))
