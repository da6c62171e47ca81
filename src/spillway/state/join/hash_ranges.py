"""The groups of a clean-up, cut into ranges of hashes whose rows fit into memory.

A range is some neighbouring groups, or a part of a group that is too large. A hash that has more rows than
fit is a range that does not fit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spillway.model import members
from spillway.state.join.labels import ABSENT, UNSAID, Int32Array
from spillway.state.join.matches import Float64Array
from spillway.state.orders import CleanupBatch
from spillway.state.rows import Int64Array, Run, SortedRows, flags, group_starts

LAST_HASH = 1 << 63
ROW_COPIES, ROW_INDEX_BYTES = 1.5, 80
"""What a row takes while its range is joined: its columns, with one of them twice, and numbers."""


@dataclass(frozen=True, slots=True)
class HashRange:
    """Hashes from `low` up to, without, `high`: those of whole groups, or some of one group."""

    low: int
    high: int
    groups: slice
    """Of the span."""
    whole: bool = True
    fits: bool = True
    """Whether its rows fit into memory; those of a single hash may not."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The rows of one input in a range, as mapped, oldest first."""

    rows: list[SortedRows]
    labels: Int32Array
    """The generation of each row, or of each slice if the range is a single hash that does not fit."""


class SpanInput:
    """The runs of one input that have rows of a batch, with the generation of each group's rows in them."""

    def __init__(self, rows: Sequence[SortedRows], labels: Int32Array, bounds: Sequence[int]) -> None:
        """`labels` per run and group; groups begin at the bounds, and the last ends before the last."""
        self._rows = rows
        self._labels = labels
        self._offsets = np.array([_positions(segment.hashes, bounds) for segment in rows], dtype=np.int64)
        self._offsets = self._offsets.reshape(len(rows), len(bounds))
        self.row_bytes = np.array([segment.row_bytes for segment in rows])

    @property
    def taken_bytes(self) -> Float64Array:
        """What rows of each group take while they are joined."""
        rows = np.diff(self._offsets, axis=1) * (self._labels != ABSENT)
        sizes: Float64Array = (self.row_bytes * ROW_COPIES + ROW_INDEX_BYTES) @ rows
        return sizes

    def taken_between(self, group: int, low: int, high: int) -> float:
        """What rows of a group with hashes from `low` up to, without, `high` take."""
        rows = sum(stop - start for _, start, stop in self._between(group, low, high))
        return rows * float(self.row_bytes.max(initial=0) * ROW_COPIES + ROW_INDEX_BYTES)

    def first_hash(self, group: int, low: int, end: int) -> int:
        """The first hash from `low` on of rows of a group; `end` if there is none before that."""
        found = self._between(group, low, end)
        return min((int(self._rows[run].hashes[start]) for run, start, _ in found), default=end)

    def slices(self, range_: HashRange) -> Slices:
        """The rows of a range that count."""
        if not range_.whole:
            return self._slices_inside(range_)
        offsets = self._offsets[:, range_.groups.start : range_.groups.stop + 1]
        labels, counts = self._labels[:, range_.groups], np.diff(offsets, axis=1)
        there = (labels != ABSENT) & (counts > 0)
        runs, edges = np.nonzero(np.diff(there, axis=1, prepend=False, append=False))
        pieces = zip(runs[::2].tolist(), offsets[runs, edges].reshape(-1, 2).tolist(), strict=True)
        rows = [self._rows[run].slice(start, stop) for run, (start, stop) in pieces]
        return Slices(rows, np.repeat(labels[there], counts[there]))

    def _slices_inside(self, range_: HashRange) -> Slices:
        group = range_.groups.start
        found = list(self._between(group, range_.low, range_.high))
        rows = [self._rows[run].slice(start, stop) for run, start, stop in found]
        labels = self._labels[[run for run, _, _ in found], group]
        return Slices(rows, np.repeat(labels, [of.rows for of in rows]) if range_.fits else labels)

    def _between(self, group: int, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        for run in np.flatnonzero(self._labels[:, group] != ABSENT).tolist():
            start, stop = _positions(self._rows[run].hashes, [low, high]).tolist()
            if start < stop:
                yield run, start, stop


class Span:
    """The groups of a batch: cuts them into ranges of hashes whose rows fit into memory."""

    def __init__(
        self,
        batch: CleanupBatch,
        runs: Sequence[tuple[Run, SortedRows]],
        inputs: int,
        groups: int,
        most_bytes: int,
    ) -> None:
        """`runs` are those that hold rows of the batch, as mapped; ranges take `most_bytes` of memory."""
        numbers = tuple(members(batch.cursor.groups))
        low, high = numbers[0], numbers[-1] + 1
        self._starts = [*group_starts(groups).tolist(), LAST_HASH][low : high + 1]
        self._most_bytes = most_bytes
        labels = generation_labels([run for run, _ in runs], batch, groups)[:, low:high]
        self.inputs = []
        for number in range(inputs):
            mine = [index for index, (run, _) in enumerate(runs) if run.input == number]
            self.inputs.append(SpanInput([runs[index][1] for index in mine], labels[mine], self._starts))
        self._sizes: list[float] = np.sum([rows.taken_bytes for rows in self.inputs], axis=0).tolist()

    def after(self, hash_: int) -> HashRange | None:
        """The next range from this hash on; None: no rows are left."""
        first = next(
            (number for number, size in enumerate(self._sizes) if size and self._starts[number + 1] > hash_),
            None,
        )
        if first is None:
            return None
        if hash_ > self._starts[first]:
            return self._inside(first, hash_)
        end, size = first, 0.0
        while end < len(self._sizes) and size + self._sizes[end] <= self._most_bytes:
            size += self._sizes[end]
            end += 1
        if end == first:
            return self._inside(first, self._starts[first])
        return HashRange(self._starts[first], self._starts[end], slice(first, end))

    def _inside(self, group: int, low: int) -> HashRange:
        """A part of a group: from the first hash on that it has, as many as fit, but one at least."""
        end, groups = self._starts[group + 1], slice(group, group + 1)
        first = min(rows.first_hash(group, low, end) for rows in self.inputs)
        if first < end and self._size(group, first, first + 1) > self._most_bytes:
            return HashRange(first, first + 1, groups, whole=False, fits=False)
        high = end
        while (size := self._size(group, first, high)) > self._most_bytes:
            high = first + max(1, int((high - first) * min(0.5, 0.9 * self._most_bytes / size)))
        return HashRange(first, high, groups, whole=False)

    def _size(self, group: int, low: int, high: int) -> float:
        return sum(rows.taken_between(group, low, high) for rows in self.inputs)


def _positions(hashes: Int64Array, bounds: Sequence[int]) -> Int64Array:
    """Where rows with these hashes begin; a bound may be beyond the last hash that there is."""
    whole = np.searchsorted(hashes, np.array([min(bound, LAST_HASH - 1) for bound in bounds]))
    return np.array([len(hashes) if b >= LAST_HASH else p for b, p in zip(bounds, whole, strict=True)])


def generation_labels(runs: Sequence[Run], batch: CleanupBatch, groups: int) -> Int32Array:
    """Per run and group, the generation of the rows; ABSENT also for groups that are not in the batch."""
    labels = np.full((len(runs), groups), ABSENT, dtype=np.int32)
    last = np.array([run.last_epoch for run in runs])
    for group, ended in zip(members(batch.cursor.groups), batch.ended, strict=True):
        labels[:, group] = np.searchsorted(np.array(ended, dtype=np.int64), last)
    for number, run in enumerate(runs):
        if run.unsaid & batch.cursor.groups:
            labels[number, flags(run.unsaid & batch.cursor.groups, groups)] = UNSAID
        if batch.cursor.groups & ~(run.live | run.spilled):
            labels[number, ~flags(run.live | run.spilled, groups)] = ABSENT
    return labels
