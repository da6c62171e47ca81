"""Clean-up: the results that no generation of a group alone could produce, each exactly once.

Generations are merged one at a time as in incremental view maintenance: the generations before it are the
base B, it is the delta D, and of all combinations over B and D those with rows of both are missing (all of B
was produced by earlier merges, all of D at run time). They are cut into disjoint terms, each driven by the
delta rows of one input i, the last input whose row is from D:

- i is not the last input: inputs before i from B and D, inputs after i from B;
- i is the last input: for each f before it, the first input whose row is from B: inputs before f from D, f
  from B, inputs between f and i from B and D.

Many groups are done together: a slice of a run is live for the generation that its group was in then. Runs
are mapped, and the rows of the groups are copied and merged once per input and generation: with hundreds of
small runs a probe of each would take most of the time. A group that is too large for the budget is done
alone, by parts of its hash range; a key that is too large is probed as it is mapped. All is enumerated in a
fixed order, so a cursor says where to go on, and a kill repeats nothing.

Known limit: on storage that is not local whole runs are read, not slices.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from spillway.model import members
from spillway.state.join.production import Production
from spillway.state.orders import CleanupBatch
from spillway.state.rows import Cursor, Int64Array, Run, SortedRows, flags, group_starts, map_run, merge
from spillway.state.storage import Storage

BASE, DELTA, BOTH = "base", "delta", "both"


MERGED_ROUNDS = 1.8
"""Rows of up to this many times the bytes of a round are merged; a round is a sixth of working memory."""
Generations = list[list[list[SortedRows]]]
"""Per input and generation, its rows."""


class CleanupTerm(NamedTuple):
    """A disjoint part of the missing combinations: its driving input, and what the others come from."""

    driver: int
    others: tuple[str, ...]
    """Per input; the driving one is always DELTA."""


def terms(inputs: int) -> tuple[CleanupTerm, ...]:
    """The terms of one merge of base and delta; together all combinations with rows of both, once."""
    last = inputs - 1
    found = [
        CleanupTerm(driver, (BOTH,) * driver + (DELTA,) + (BASE,) * (last - driver)) for driver in range(last)
    ]
    for first in range(last):
        between = (BOTH,) * (last - first - 1)
        found.append(CleanupTerm(last, (DELTA,) * first + (BASE,) + between + (DELTA,)))
    return tuple(found)


@dataclass(slots=True)
class CleanupStep:
    """One processor's part of a clean-up epoch: bounded by driving rows and by results."""

    storage: Storage
    production: Production
    rows_left: int = field(init=False)
    driven_rows: int = 0
    _mapped: dict[str, SortedRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows_left = self.production.limits.rows

    def run(self, batches: Sequence[CleanupBatch]) -> tuple[list[Cursor], list[Cursor]]:
        """Go on with the batches in order; returns where begun ones stopped, and those that are finished."""
        cursors = []
        finished = []
        for batch in batches:
            if self._exhausted():
                if batch.cursor != batch.cursor.at(0):
                    cursors.append(batch.cursor)
                continue
            stopped = self._batch(batch)
            if stopped is None:
                finished.append(batch.cursor)
            else:
                cursors.append(stopped)
        return cursors, finished

    def _exhausted(self) -> bool:
        return self.rows_left <= 0 or self.production.results_left <= 0

    def _batch(self, batch: CleanupBatch) -> Cursor | None:
        plan = terms(len(self.production.operator.inputs))
        cursor = batch.cursor
        for part in range(cursor.part, cursor.parts):
            mapped = self._segments(batch, part)
            merged = self._merged(mapped)
            for generation in range(cursor.generation, batch.generations):
                for number in range(cursor.term, len(plan)):
                    if self._exhausted():
                        return cursor
                    if stopped := self._term(plan[number], mapped, merged, cursor):
                        return stopped
                    cursor = cursor.at(part, generation, number + 1)
                cursor = cursor.at(part, generation + 1)
            cursor = cursor.at(part + 1)
        return None

    def _term(
        self, term: CleanupTerm, mapped: Generations, merged: Generations, cursor: Cursor
    ) -> Cursor | None:
        """Produce one term from the cursor on; returns where it stopped, None at its end.

        What drives it is always taken as it is mapped, so that its order does not depend on the memory.
        """
        generation = cursor.generation
        ranges = {
            BASE: slice(0, generation),
            DELTA: slice(generation, generation + 1),
            BOTH: slice(0, generation + 1),
        }
        others = [
            [segment for of_generation in of_input[ranges[kind]] for segment in of_generation]
            for of_input, kind in zip(merged, term.others, strict=True)
        ]
        if not all(others):
            return None
        row, emitted = cursor.row, cursor.emitted
        driving = mapped[term.driver][generation]
        groups, sample = self.production.operator.groups, self.production.sample
        for first, driver in _driving(driving, groups, row, cursor.piece_bytes, sample):
            while row < first + driver.rows:
                if self._exhausted():
                    return replace(cursor, row=row, emitted=emitted)
                start = row - first
                part = driver.slice(start, min(driver.rows, start + self.rows_left))
                done, emitted = self.production.produce(term.driver, part, others, emitted)
                row += done
                self.rows_left -= done
                self.driven_rows += done
        return None

    def _merged(self, mapped: Generations) -> Generations:
        """The same rows as one segment per input and generation, if that fits into memory.

        Merging is stable, so the number of a match among the matches of its key stays what it is.
        """
        groups = self.production.operator.groups
        slices = [segment for of_input in mapped for of_generation in of_input for segment in of_generation]
        most = self.production.limits.round_bytes * MERGED_ROUNDS
        if sum(segment.live_bytes(groups) for segment in slices) > most:
            return mapped
        sample = self.production.sample
        merged = [
            [[merge(segments, groups, sample)] if segments else [] for segments in of_input]
            for of_input in mapped
        ]
        sample()
        return [[[segment for segment in of if segment.rows] for of in of_input] for of_input in merged]

    def _segments(self, batch: CleanupBatch, part: int) -> Generations:
        """Per input and generation, the rows of one part of the groups, as mapped from the runs."""
        inputs, groups = len(self.production.operator.inputs), self.production.operator.groups
        found: Generations = [[[] for _ in range(batch.generations)] for _ in range(inputs)]
        for run, by_generation in batch.slices:
            whole = self._map(run)
            if batch.cursor.parts > 1:
                (group,) = members(batch.cursor.groups)
                whole = _between(whole, *part_bounds(group, groups, part, batch.cursor.parts))
            for generation, mask in by_generation:
                found[run.input][generation].append(
                    SortedRows(whole.hashes, whole.columns, flags(mask, groups))
                )
        return found

    def _map(self, run: Run) -> SortedRows:
        if run.name not in self._mapped:
            self._mapped[run.name] = map_run(self.storage, run)
        return self._mapped[run.name]


def _driving(
    segments: Sequence[SortedRows],
    groups: int,
    after: int,
    piece_bytes: int,
    sample: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, SortedRows]]:
    """The live rows of the segments in pieces of bounded size, each in hash order, with their numbers.

    Pieces that end before row `after` are left out. What is in a piece depends on the segments and on the
    cursor, so that it is the same in any later process, whatever memory that has.
    """
    number = 0
    for piece in _pieces(segments, groups, piece_bytes):
        rows = sum(len(positions) for _, positions in piece)
        if number + rows > after:
            copies = [segment.take(positions) for segment, positions in piece]
            yield number, merge(copies, groups, sample)
        number += rows


def _pieces(
    segments: Sequence[SortedRows], groups: int, piece_bytes: int
) -> Iterator[list[tuple[SortedRows, Int64Array]]]:
    """Positions of live rows, cut and put together to about the size of a piece."""
    piece: list[tuple[SortedRows, Int64Array]] = []
    size = 0
    for segment in segments:
        live = segment.live_rows(groups)
        positions = np.arange(segment.rows, dtype=np.int64) if live is None else live
        row_bytes = max(1, segment.nbytes // max(1, segment.rows))
        step = max(1, piece_bytes // row_bytes)
        for start in range(0, len(positions), step):
            part = positions[start : start + step]
            if piece and size + len(part) * row_bytes > piece_bytes:
                yield piece
                piece, size = [], 0
            piece.append((segment, part))
            size += len(part) * row_bytes
    if piece:
        yield piece


def part_bounds(group: int, groups: int, part: int, parts: int) -> tuple[int, int | None]:
    """The hashes of one part of a group: from the first on, up to but without the second (None: no end)."""
    starts = group_starts(groups)
    low = int(starts[group])
    width = (int(starts[group + 1]) if group + 1 < groups else 1 << 63) - low
    first = low + width * part // parts
    last = low + width * (part + 1) // parts
    return first, last if last < 1 << 63 else None


def _between(segment: SortedRows, low: int, high: int | None) -> SortedRows:
    start = int(np.searchsorted(segment.hashes, low))
    stop = segment.rows if high is None else int(np.searchsorted(segment.hashes, high))
    return SortedRows(segment.hashes[start:stop], segment.columns.slice(start, stop - start))
