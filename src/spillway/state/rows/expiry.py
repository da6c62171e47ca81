"""Expiry: rows of a windowed input that no later row can meet leave state.

No row older than the watermark is taken in. So a row that is older than the watermark by more than its range
is too old for every result to come. Dropping it changes no answer, except in a group that is split into
generations: there it may still have missing results with rows on disk, so such groups keep everything until
they are cleaned up. Nor may rows vanish while a probe has stopped inside a row: where it goes on is a
position among the matches of then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spillway.model import GroupSet, Window, union
from spillway.state.rows.group import Int64Array, flags, group_of
from spillway.state.rows.run import EventTimes, Run
from spillway.state.rows.sorted_rows import SortedRows

NEVER = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Expiry:
    """What may be dropped in one epoch."""

    windows: tuple[Window, ...] = ()
    watermark: int | None = None
    keep: GroupSet = 0
    """Groups that keep everything."""

    def cutoff(self, number: int) -> int:
        """Rows of this input that are older may go."""
        if self.watermark is None or not self.windows:
            return NEVER
        range_us = self.windows[number].range_us
        return NEVER if range_us is None else self.watermark - range_us

    def can_expire(self, number: int) -> bool:
        return bool(self.windows) and self.windows[number].range_us is not None

    def unexpired(self, number: int, segment: SortedRows, groups: int) -> SortedRows:
        """The rows that stay; `segment` has live rows only."""
        cutoff = self.cutoff(number)
        if cutoff == NEVER or not segment.rows:
            return segment
        stays = event_times(segment, self.windows[number]) >= cutoff
        if self.keep:
            stays |= flags(self.keep, groups)[group_of(segment.hashes, groups)]
        if stays.all():
            return segment
        return segment.take(np.flatnonzero(stays))

    def times(self, number: int, segment: SortedRows) -> EventTimes | None:
        """What to note of a run that holds these rows."""
        if not self.windows or not segment.rows:
            return None
        times = event_times(segment, self.windows[number])
        return EventTimes(int(times.min()), int(times.max()), self.cutoff(number))

    def due(self, run: Run) -> bool:
        """Whether a run is worth rewriting: by its times, half of its rows or more may go."""
        cutoff, times = self.cutoff(run.input), run.times
        if cutoff == NEVER or times is None or not run.live & ~self.keep:
            return False
        low = max(times.earliest, times.swept)
        return low < times.latest + 1 and 2 * (cutoff - low) > times.latest - low

    def fully_expired(self, run: Run) -> bool:
        """Whether all live rows of the run may go."""
        return not run.live & self.keep and _is_past(run, self)


def event_times(segment: SortedRows, window: Window) -> Int64Array:
    times: Int64Array = segment.columns.column(window.column).to_numpy()
    return times


def youngest(seen: Sequence[tuple[int | None, ...]], inputs: int) -> tuple[int | None, ...]:
    """The youngest event time of each input in several reports; None where there was no row yet."""
    times = [[latest[n] for latest in seen if len(latest) > n] for n in range(inputs)]
    return tuple(max((time for time in of_input if time is not None), default=None) for of_input in times)


def next_watermark(
    watermark: int | None, latest: tuple[int | None, ...], windows: tuple[Window, ...], *, ended: bool
) -> int | None:
    """The watermark after rows as young as `latest` have come; it never goes back.

    When the input has ended all rows are final, so whatever came later with such a time would be late.
    """
    sources = [(time, window) for time, window in zip(latest, windows, strict=False) if not window.derived]
    if not sources or len(latest) < len(windows):
        return watermark
    times = [(time, -1 if ended else window.lateness_us) for time, window in sources]
    known = [time - lateness for time, lateness in times if time is not None]
    if len(known) < len(sources):
        return watermark
    reached = min(known)
    return reached if watermark is None else max(watermark, reached)


def expired_slices(runs: Sequence[Run], expiry: Expiry, whole: GroupSet) -> tuple[tuple[str, GroupSet], ...]:
    """Slices on disk that nothing needs: all their rows are too old, and their group is whole."""
    return tuple(
        (run.name, run.spilled & whole) for run in runs if run.spilled & whole and _is_past(run, expiry)
    )


def lagging_groups(runs: Sequence[Run], expiry: Expiry) -> GroupSet:
    """Groups with slices on disk of which all that can expire are too old."""
    past = union(run.spilled for run in runs if _is_past(run, expiry))
    needed = union(run.spilled for run in runs if expiry.can_expire(run.input) and not _is_past(run, expiry))
    return past & ~needed


def _is_past(run: Run, expiry: Expiry) -> bool:
    return run.times is not None and run.times.latest < expiry.cutoff(run.input)
