"""A join tree over columns in memory: rows are positions, one per relation, until the result is made.

For relations of some thousand to some million rows Spark's own joins spend most of their time on starting:
code is generated and compiled for every statement, and every hash table is a job. Here a task joins with
numpy instead. Invariant: only positions move through the joins; the result's columns are gathered once, at
the end. Every task has all hash tables and an equal share of the rows that probe; it counts the memory of all
of its arrays and gives up if they would exceed a limit. Known limits: keys are integers; every task builds
all hash tables; if several keys join, one of them finds pairs and the others are compared for each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spillway.compute.cardinality import Cardinality
from spillway.compute.join_graph import JoinGraph, members_of
from spillway.compute.tree import Input, Segment, mask_of_input, steps

Positions = npt.NDArray[np.int64]
Rows = dict[int, Positions]
"""By relation: for each row its position there."""
Report = Callable[[int, int, int], None]
"""Number of the segment, number of the join, rows of it."""

MOST_ROWS = 1 << 18
"""Rows that one step makes at a time; more are made in pieces."""
MOST_BYTES = 1 << 28
"""Bytes of text that are gathered at a time: an Arrow column of text holds at most 2 GB."""
POSITION_BYTES = 8
TABLE_ARRAYS = 4
"""The memory of a row in a hash table, in positions: its place, its key, and its part of the addresses."""
SORTING_ARRAYS = 4
"""The memory that sorting needs while a table is made, in copies of its keys."""
DENSE = 8
"""Keys are looked up by address if their range is at most this many times their number."""


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation in Parquet files: for each of its columns, the name in the view and in the files."""

    files: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ColumnarJoin:
    """What a task needs to know."""

    graph: JoinGraph
    tree: Segment
    relations: tuple[StoredRelation, ...]
    keys: tuple[Mapping[int, str], ...]
    """By key class: the name of the column of each member."""
    outputs: tuple[tuple[int, str], ...]
    """The columns of the result, with their relation."""
    limit_bytes: float | None = None
    """The bytes that one task may hold; None: no limit."""


class ColumnMemoryError(Exception):
    """A task would hold more than its limit."""


class KeyTable:
    """The rows of one side by their key; nulls are in no table."""

    __slots__ = ("_low", "_order", "_sorted", "_starts")

    def __init__(self, keys: Positions, valid: npt.NDArray[np.bool_] | None) -> None:
        kept = np.arange(len(keys)) if valid is None else np.flatnonzero(valid)
        values = keys if valid is None else keys[kept]
        order = np.argsort(values, kind="stable")
        self._order, self._sorted = kept[order], values[order]
        self._low, self._starts = 0, None
        if len(values):
            low, span = int(self._sorted[0]), int(self._sorted[-1]) - int(self._sorted[0]) + 1
            if span <= DENSE * len(values) + 1024:
                counts = np.bincount(values - low, minlength=span)
                self._low, self._starts = low, np.concatenate(([0], np.cumsum(counts)))

    @property
    def nbytes(self) -> int:
        starts = 0 if self._starts is None else self._starts.nbytes
        return self._order.nbytes + self._sorted.nbytes + starts

    def find(self, keys: Positions, valid: npt.NDArray[np.bool_] | None) -> tuple[Positions, Positions]:
        """Where the matches of each key begin, and how many there are."""
        if self._starts is None:
            first = np.searchsorted(self._sorted, keys, side="left")
            count = np.searchsorted(self._sorted, keys, side="right") - first
        else:
            slots = keys - self._low
            inside = (keys >= self._low) & (slots < len(self._starts) - 1) & (slots >= 0)
            slots = np.where(inside, slots, 0)
            first = self._starts[slots]
            count = np.where(inside, self._starts[slots + 1] - first, 0)
        return first, count if valid is None else np.where(valid, count, 0)

    def expand(self, first: Positions, count: Positions) -> tuple[Positions, Positions]:
        """The pairs: which key, and which row of this side."""
        which = np.repeat(np.arange(len(count)), count)
        before = np.cumsum(count) - count
        within = np.arange(len(which)) - before[which]
        return which, self._order[first[which] + within]


class ShareOfJoin:
    """One task's share of a join."""

    def __init__(self, plan: ColumnarJoin, share: int, shares: int, report: Report) -> None:
        self._plan, self._share, self._shares, self._report = plan, share, shares, report
        self._numbers = {segment: number for number, segment in enumerate(plan.tree.segments())}
        self._table = cache(self._read)
        self._key = cache(self._read_key)
        self._cardinality = Cardinality(plan.graph)
        self._held = self._widest_bytes = 0
        self._working: dict[tuple[int, int], int] = {}
        self.peak_bytes = 0
        """The most that arrays and columns took together."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The result's rows of this share."""
        for rows in self._segment(self._plan.tree):
            most = max(1, MOST_BYTES // self._widest())
            for begin in range(0, _count(rows), most):
                columns = {
                    name: self._table(relation)[name].take(pa.array(rows[relation][begin : begin + most]))
                    for relation, name in self._plan.outputs
                }
                yield from pa.table(columns).combine_chunks().to_batches()

    def _widest(self) -> int:
        """The most bytes of text that a row of the result can have; at least one."""
        if self._widest_bytes == 0:
            texts = [
                self._table(relation)[name]
                for relation, name in self._plan.outputs
                if pa.types.is_string(self._table(relation).schema.field(name).type)
            ]
            self._widest_bytes = max(1, sum(pc.max(pc.binary_length(text)).as_py() or 0 for text in texts))
        return self._widest_bytes

    def _segment(self, segment: Segment) -> Iterator[Rows]:
        is_final = segment is self._plan.tree
        sides = [self._side(build) for build in segment.builds]
        made = steps(self._plan.graph, segment)
        tables = []
        classes = []
        for step, side in zip(made, sides, strict=True):
            build = mask_of_input(step.build)
            classes.append(self._cardinality.by_matches(step.classes, step.before, build))
            values, valid = self._values(classes[-1][0], build, side)
            self._hold(sum(positions.nbytes for positions in side.values()), SORTING_ARRAYS * values.nbytes)
            tables.append(KeyTable(values, valid))
            self._hold(tables[-1].nbytes)
        is_counted = is_final or self._share == 0  # all tasks make the same rows of the other segments

        def flow(number: int, rows: Rows) -> Iterator[Rows]:
            if number == len(made):
                yield rows
                return
            step, side, table = made[number], sides[number], tables[number]
            first, count = table.find(*self._values(classes[number][0], step.before, rows))
            ends = np.cumsum(count)
            start = 0
            while start < len(count):
                taken = int(ends[start - 1]) if start else 0
                stop = max(start + 1, int(np.searchsorted(ends, taken + MOST_ROWS, side="right")))
                which, found = table.expand(first[start:stop], count[start:stop])
                joined = {relation: at[start:stop][which] for relation, at in rows.items()}
                joined |= {relation: at[found] for relation, at in side.items()}
                self._working[self._numbers[segment], number] = (len(joined) + 2) * found.nbytes
                self._hold(0, sum(self._working.values()))
                joined = self._equal(classes[number][1:], step.before, mask_of_input(step.build), joined)
                if is_counted:
                    self._report(self._numbers[segment], number, _count(joined))
                if _count(joined):
                    yield from flow(number + 1, joined)
                start = stop

        probe = self._side(segment.probe)
        if is_final:
            size = _count(probe)
            begin, end = (size * n // self._shares for n in (self._share, self._share + 1))
            probe = {relation: at[begin:end] for relation, at in probe.items()}
        for begin in range(0, _count(probe), MOST_ROWS):
            yield from flow(0, {relation: at[begin : begin + MOST_ROWS] for relation, at in probe.items()})

    def _side(self, side: Input) -> Rows:
        if isinstance(side, int):
            return {side: np.arange(self._table(side).num_rows)}
        found = list(self._segment(side))
        return {
            relation: np.concatenate([rows[relation] for rows in found] or [np.zeros(0, np.int64)])
            for relation in members_of(side.mask)
        }

    def _values(self, number: int, mask: int, rows: Rows) -> tuple[Positions, npt.NDArray[np.bool_] | None]:
        """The key of each row, by the first relation of the set that has it."""
        columns = self._plan.keys[number]
        relation = next(relation for relation in members_of(mask) if relation in columns)
        values, valid = self._key(relation, columns[relation])
        at = rows[relation]
        return values[at], None if valid is None else valid[at]

    def _equal(self, classes: Sequence[int], before: int, added: int, rows: Rows) -> Rows:
        """The rows whose further keys are equal, too."""
        for number in classes:
            (left, left_valid), (right, right_valid) = (
                self._values(number, mask, rows) for mask in (before, added)
            )
            same = left == right
            for valid in (left_valid, right_valid):
                same = same if valid is None else same & valid
            rows = {relation: at[same] for relation, at in rows.items()}
        return rows

    def _read(self, relation: int) -> pa.Table:
        stored = self._plan.relations[relation]
        names = dict.fromkeys(column for _, column in stored.columns)
        parts = [read_file(file, list(names), use_threads=False) for file in stored.files]
        table = pa.concat_tables(parts).combine_chunks()
        made = pa.table({name: table[column] for name, column in stored.columns})
        self._hold(made.nbytes, made.nbytes)
        return made

    def _read_key(self, relation: int, name: str) -> tuple[Positions, npt.NDArray[np.bool_] | None]:
        column = self._table(relation)[name].combine_chunks()
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        self._hold(values.nbytes + (0 if valid is None else valid.nbytes))
        return values, valid

    def _hold(self, size: int, passing: int = 0) -> None:
        """Count `size` bytes that stay, and `passing` bytes that are freed soon."""
        self._held += size
        self.peak_bytes = max(self.peak_bytes, self._held + passing)
        limit = self._plan.limit_bytes
        if limit is not None and self.peak_bytes > limit:
            raise ColumnMemoryError(f"{self.peak_bytes} bytes")


def column_bytes(graph: JoinGraph, tree: Segment, keys: Sequence[Mapping[int, str]]) -> float:
    """The bytes that one task is estimated to hold: columns, keys, hash tables, and rows between joins."""
    cardinality = Cardinality(graph)
    held = passing = 0.0
    for index, relation in enumerate(graph.relations):
        held += relation.rows * (relation.row_bytes + POSITION_BYTES * sum(index in key for key in keys))
        passing = max(passing, relation.rows * relation.row_bytes)
    working = 0.0
    for segment in tree.segments():
        for step in steps(graph, segment):
            build = mask_of_input(step.build)
            rows = cardinality.rows(build)
            held += rows * POSITION_BYTES * (build.bit_count() + TABLE_ARRAYS)
            passing = max(passing, rows * POSITION_BYTES * SORTING_ARRAYS)
            best = cardinality.by_matches(step.classes, step.before, build)[0]
            found = max(cardinality.matches(best, step.before, build), cardinality.rows(step.after))
            working += min(found, MOST_ROWS) * POSITION_BYTES * (step.after.bit_count() + 2)
    return held + max(passing, working)


def read_file(file: str, columns: list[str], *, use_threads: bool = True) -> pa.Table:
    """Columns of one file; directories above it, such as `k=1`, add none."""
    return pq.read_table(file, columns=columns, use_threads=use_threads, partitioning=None)


def _count(rows: Rows) -> int:
    return len(next(iter(rows.values())))
