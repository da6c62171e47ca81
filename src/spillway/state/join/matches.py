"""The matches of one input: the rows that each needle (a distinct hash of the driving rows) has there.

There are three kinds. `InPlace`: all matches are in one segment, and values are taken from there. `Copied`:
matches of several segments are copied side by side, which makes expanding them fast. `Located`: they are too
many for that (a key with very many rows), stay where they are, and only chunks are copied.

Invariant: whatever the kind, match number d of a needle is the same row: by segment, then by position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from spillway.state.join.search import Hits, expanded, rows_per_needle
from spillway.state.rows import Int64Array, SortedRows, concat, take

GATHER_ROWS = 1 << 20
Float64Array = np.typing.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gathering:
    """How much of each input is copied side by side for a block of driving rows, at most."""

    rows: int = GATHER_ROWS
    bytes: int = 1 << 62
    row_bytes: tuple[Float64Array, ...] = ()
    """Per input and segment, the size of a row; empty where bytes do not matter."""

    def has_room(self, input_: int, hits: Sequence[Hits]) -> bool:
        """Whether these rows of an input may be copied."""
        if sum(of_segment.rows for of_segment in hits) > self.rows:
            return False
        if not self.row_bytes:
            return True
        sizes = self.row_bytes[input_]
        return bool(sum(of_segment.rows * sizes[of_segment.segment] for of_segment in hits) <= self.bytes)


@dataclass(frozen=True, slots=True)
class InPlace:
    """Matches in one segment; those of needle n are its rows lows[n] + 0..counts[n]."""

    columns: pa.RecordBatch
    lows: Int64Array
    counts: Int64Array
    few: bool
    """Whether they could be copied, so that all may be looked at before they are expanded."""

    def rows(self, needles: Int64Array, digits: Int64Array) -> Int64Array:
        return self.lows[needles] + digits

    def column(self, column: int, rows: Int64Array) -> pa.Array:
        return self.columns.column(column).take(pa.array(rows))

    def value_bytes(self, column: int) -> float:
        """The mean size of a value of the matches."""
        values = self.columns.column(column)
        if _is_text(values.type):
            return _text_bytes(values, self.lows, self.counts)
        if _is_fixed(values.type) or not self.few:
            return mean_bytes([self.columns], column)
        matches = values.take(pa.array(expanded(self.lows, self.counts)))
        return float(matches.nbytes / max(1, len(matches)))

    def with_needles(self, column: int) -> tuple[pa.Array, Int64Array]:
        """A column of all matches, in any order, and the needle of each."""
        rows = expanded(self.lows, self.counts)
        return self.column(column, rows), np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True, slots=True)
class Copied:
    """Matches of several segments side by side; those of needle n are order[starts[n] + 0..counts[n]]."""

    columns: pa.RecordBatch
    hits: tuple[Hits, ...]
    starts: Int64Array
    counts: Int64Array
    order: Int64Array

    @property
    def few(self) -> bool:
        return True

    def rows(self, needles: Int64Array, digits: Int64Array) -> Int64Array:
        rows: Int64Array = self.order[self.starts[needles] + digits]
        return rows

    def column(self, column: int, rows: Int64Array) -> pa.Array:
        return self.columns.column(column).take(pa.array(rows))

    def value_bytes(self, column: int) -> float:
        """The mean size of a value."""
        return mean_bytes([self.columns], column)

    def with_needles(self, column: int) -> tuple[pa.Array, Int64Array]:
        """A column of all matches, in any order, and the needle of each."""
        needles = [np.repeat(of_segment.needles, of_segment.counts) for of_segment in self.hits]
        return self.columns.column(column), np.concatenate(needles)


@dataclass(frozen=True, slots=True)
class Located:
    """Very many matches of several segments. A row is numbered as if these lay one behind the other."""

    segments: tuple[pa.RecordBatch, ...]
    offsets: Int64Array
    """The number of the first row of each segment."""
    lows: Int64Array
    ends: Int64Array
    """Per segment and needle, the matches up to and including that segment."""
    counts: Int64Array

    @property
    def few(self) -> bool:
        return False

    def rows(self, needles: Int64Array, digits: Int64Array) -> Int64Array:
        if self.ends.shape[1] == 1:
            return self._rows_of_one(digits)
        ends = self.ends[:, needles]
        segment = (ends <= digits).sum(axis=0)
        before = np.where(segment > 0, ends[segment - 1, np.arange(len(needles))], 0)
        rows: Int64Array = self.offsets[segment] + self.lows[segment, needles] + digits - before
        return rows

    def _rows_of_one(self, digits: Int64Array) -> Int64Array:
        """The same for a single needle, which may be in very many segments."""
        ends = self.ends[:, 0]
        before = np.concatenate(([0], ends[:-1]))
        segment = np.searchsorted(ends, digits, side="right")
        rows: Int64Array = (self.offsets + self.lows[:, 0] - before)[segment] + digits
        return rows

    def column(self, column: int, rows: Int64Array) -> pa.Array:
        segment = np.searchsorted(self.offsets, rows, side="right") - 1
        order = np.argsort(segment, kind="stable")
        pieces = []
        for number in np.unique(segment):
            mine = rows[order[segment[order] == number]] - self.offsets[number]
            pieces.append(self.segments[number].column(column).take(pa.array(mine)))
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return pa.concat_arrays(pieces).take(pa.array(back))

    def value_bytes(self, column: int) -> float:
        """The mean size of a value."""
        return mean_bytes(self.segments, column)


Matches = InPlace | Copied | Located


def matches_of(segments: Sequence[SortedRows], hits: Sequence[Hits], needles: int, *, few: bool) -> Matches:
    """The matches of an input for needles that all have some; `few` says whether they may be copied."""
    if len(hits) == 1:
        (only,) = hits
        return InPlace(segments[only.segment].columns, only.lows, only.counts, few)
    return _copied(segments, hits, needles) if few else _located(segments, hits, needles)


def mean_bytes(batches: Sequence[pa.RecordBatch], column: int) -> float:
    rows = sum(batch.num_rows for batch in batches)
    return float(sum(batch.column(column).nbytes for batch in batches) / max(1, rows))


def _copied(segments: Sequence[SortedRows], hits: Sequence[Hits], needles: int) -> Copied:
    counts = rows_per_needle(hits, needles)
    starts = np.cumsum(counts) - counts
    order = np.empty(int(counts.sum()), dtype=np.int64)
    before, done, parts = starts.copy(), 0, []
    for found in hits:
        rows = expanded(found.lows, found.counts)
        parts.append(take(segments[found.segment].columns, rows))
        order[expanded(before[found.needles], found.counts)] = np.arange(done, done + len(rows))
        before[found.needles] += found.counts
        done += len(rows)
    return Copied(concat(parts), tuple(hits), starts, counts, order)


def _located(segments: Sequence[SortedRows], hits: Sequence[Hits], needles: int) -> Located:
    lows = np.zeros((len(hits), needles), dtype=np.int64)
    counts = np.zeros((len(hits), needles), dtype=np.int64)
    for number, found in enumerate(hits):
        lows[number, found.needles] = found.lows
        counts[number, found.needles] = found.counts
    sizes = np.array([segments[found.segment].rows for found in hits], dtype=np.int64)
    return Located(
        segments=tuple(segments[found.segment].columns for found in hits),
        offsets=np.cumsum(sizes) - sizes,
        lows=lows,
        ends=np.cumsum(counts, axis=0),
        counts=counts.sum(axis=0),
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_binary(kind))


def _text_bytes(values: pa.Array, lows: Int64Array, counts: Int64Array) -> float:
    """The mean size of the values at lows[0] + 0..counts[0], and so on, with their offsets."""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset :]
    sizes = offsets[lows + counts].astype(np.int64) - offsets[lows]
    return float(sizes.sum() / max(1, counts.sum())) + offsets.itemsize


def _is_fixed(kind: pa.DataType) -> bool:
    """Whether all values take the same space."""
    return bool(types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind))
