"""The vectorised probe of an m-way join: which combinations of state rows does each driving row have?

`probe` takes the driving rows (one input's delta, in hash order) and the segments of every other input, and
finds by binary search the matching rows of each. Nothing is expanded yet: `Combinations` knows how many
results each driving row has, and `chunk` expands any interval of them, in a fixed order, in mixed radix: the
last input varies fastest, the matches of one input are ordered by segment and position.

Invariant: the order of the combinations of a driving row depends only on the contents of the segments in
their order, not on how the rows are cut into segments (merging is stable). So a probe may stop after any
number of results and go on in another process.

The matched rows of a block are copied once, side by side, which makes expanding them fast; where they would
be too many (a key with very many rows) they stay where they are and only chunks are copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.plan.expression import ColumnRef
from spillway.state.rows import Int64Array, SortedRows, concat, group_of, take

MAX_RESULTS_OF_ROW = 1 << 62
"""More combinations than this for one row are counted as this many; nobody will see the last one."""
GATHER_ROWS = 1 << 20
Float64Array = np.typing.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gathering:
    """How much of each input is copied side by side for a block of driving rows, at most."""

    rows: int = GATHER_ROWS
    bytes: int = 1 << 62
    row_bytes: tuple[Float64Array, ...] = ()
    """Per input and segment, the size of a row; empty where bytes do not matter."""

    def has_room(self, input_: int, counts: Int64Array) -> bool:
        """Whether this many rows per segment and needle may be copied."""
        rows = counts.sum(axis=1)
        if rows.sum() > self.rows:
            return False
        return not self.row_bytes or bool(rows @ self.row_bytes[input_] <= self.bytes)


NO_LIMIT = Gathering()


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows of one input that match any needle; those of needle n are order[starts[n] + 0..counts[n]]."""

    columns: pa.RecordBatch
    starts: Int64Array
    counts: Int64Array
    order: Int64Array | None
    needles: Int64Array
    """The needle of each row of `columns`."""

    def rows(self, needles: Int64Array, digits: Int64Array) -> Int64Array:
        positions = self.starts[needles] + digits
        return positions if self.order is None else self.order[positions]

    def column(self, column: int, rows: Int64Array) -> pa.Array:
        return self.columns.column(column).take(pa.array(rows))

    def value_bytes(self, column: int) -> float:
        """The mean size of a value."""
        return _value_bytes([self.columns], column)


@dataclass(frozen=True, slots=True)
class Located:
    """Like `Matched`, but nothing is copied before a chunk asks for it: for keys with very many rows.

    A row is numbered as if all segments lay one behind the other.
    """

    segments: tuple[pa.RecordBatch, ...]
    offsets: Int64Array
    """The number of the first row of each segment."""
    lows: Int64Array
    ends: Int64Array
    """Per segment and needle, the matches up to and including that segment."""
    counts: Int64Array

    def rows(self, needles: Int64Array, digits: Int64Array) -> Int64Array:
        ends = self.ends[:, needles]
        segment = (ends <= digits).sum(axis=0)
        before = np.where(segment > 0, ends[segment - 1, np.arange(len(needles))], 0)
        rows: Int64Array = self.offsets[segment] + self.lows[segment, needles] + digits - before
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
        return _value_bytes(self.segments, column)


@dataclass(frozen=True, slots=True)
class Combinations:
    """All results of a block of driving rows, counted but not expanded."""

    driver: SortedRows
    input: int
    rows: Int64Array
    """The driving rows that have results, ascending."""
    needles: Int64Array
    """The needle (distinct hash) of each of them."""
    ends: Int64Array
    """The number of results up to and including each of them."""
    matched: tuple[Matched | Located | None, ...]
    """Per input; None for the driving one."""
    collisions: bool
    """Whether rows of different keys share a hash here, so that chunks must be verified."""

    @property
    def total(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def is_copied(self) -> bool:
        """Whether the matches of all inputs were few enough to be copied side by side."""
        return not any(isinstance(matches, Located) for matches in self.matched)

    def value_bytes(self, input_: int, column: int) -> float:
        """The mean size of a value of the results, as far as it can be told before they are expanded."""
        matched = self.matched[input_]
        return _value_bytes([self.driver.columns], column) if matched is None else matched.value_bytes(column)

    def position(self, results: int) -> tuple[int, int]:
        """Where the block stands after this many results: driving rows done, and results of the next one."""
        if results >= self.total:
            return self.driver.rows, 0
        index = int(np.searchsorted(self.ends, results, side="right"))
        return int(self.rows[index]), results - (int(self.ends[index - 1]) if index else 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some results as row numbers: into the driver for the driving input, into `matched` for the others."""

    combinations: Combinations
    indices: tuple[Int64Array, ...]

    @property
    def rows(self) -> int:
        return len(self.indices[0])

    def column(self, input_: int, column: int) -> pa.Array:
        matched = self.combinations.matched[input_]
        if matched is not None:
            return matched.column(column, self.indices[input_])
        return self.combinations.driver.columns.column(column).take(pa.array(self.indices[input_]))

    def values(self, ref: ColumnRef) -> pa.Array:
        return self.column(ref.input, ref.column)

    def filter(self, keep: pa.Array) -> "Chunk":
        chosen = np.flatnonzero(keep.fill_null(False).to_numpy(zero_copy_only=False))
        return Chunk(self.combinations, tuple(index[chosen] for index in self.indices))

    def hashes(self) -> Int64Array:
        return self.combinations.driver.hashes[self.indices[self.combinations.input]]


def probe(
    driver: SortedRows,
    input_: int,
    segments: Sequence[Sequence[SortedRows]],
    groups: int,
    key_columns: Sequence[Sequence[int]],
    gathering: Gathering = NO_LIMIT,
) -> Combinations:
    """Match the driving rows of `input_` with the segments of all other inputs.

    `key_columns` are the columns of each input that hold the key, to be compared where hashes are equal;
    empty where equal hashes mean equal keys.
    """
    first = _first_of_each(driver.hashes)
    needles = driver.hashes[first]
    needle_groups = group_of(needles, groups)
    kept = np.arange(len(needles))
    ranges: dict[int, tuple[Int64Array, Int64Array]] = {}
    for other in range(len(segments)):
        if other == input_:
            continue
        lows, counts = _ranges(segments[other], needles[kept], needle_groups[kept])
        hit = np.flatnonzero(counts.sum(axis=0))
        ranges = {key: (low[:, hit], count[:, hit]) for key, (low, count) in ranges.items()}
        ranges[other] = (lows[:, hit], counts[:, hit])
        kept = kept[hit]
        if not len(kept):
            break
    return _combine(driver, input_, segments, first, kept, ranges, key_columns, gathering)


def _combine(
    driver: SortedRows,
    input_: int,
    segments: Sequence[Sequence[SortedRows]],
    first: Int64Array,
    kept: Int64Array,
    ranges: dict[int, tuple[Int64Array, Int64Array]],
    key_columns: Sequence[Sequence[int]],
    gathering: Gathering,
) -> Combinations:
    if not len(kept):
        nothing = np.empty(0, dtype=np.int64)
        return Combinations(driver, input_, nothing, nothing, nothing, (None,) * len(segments), False)
    matched = tuple(
        None
        if other == input_
        else _match(segments[other], *ranges[other], copied=gathering.has_room(other, ranges[other][1]))
        for other in range(len(segments))
    )
    product = np.ones(len(kept))
    for matches in matched:
        if matches is not None:
            product *= matches.counts
    results = np.minimum(product, MAX_RESULTS_OF_ROW).astype(np.int64)
    repeats = np.diff(np.append(first, driver.rows))[kept]
    rows = _expand(first[kept], repeats)
    needles = np.repeat(np.arange(len(kept)), repeats)
    # A caller stops long before 2^62 results, so rows beyond that many need no number.
    countable = max(1, int(np.searchsorted(np.cumsum(product[needles]), MAX_RESULTS_OF_ROW)))
    rows, needles = rows[:countable], needles[:countable]
    keys = _Keys(driver, first[kept], key_columns, input_)
    collisions = bool(key_columns[input_]) and keys.differ(rows, needles, matched)
    return Combinations(driver, input_, rows, needles, np.cumsum(results[needles]), matched, collisions)


def chunk(combinations: Combinations, start: int, stop: int) -> Chunk:
    """The results number `start` to `stop` of the block, in its fixed order."""
    ends = combinations.ends
    low = int(np.searchsorted(ends, start, side="right"))
    high = int(np.searchsorted(ends, stop, side="left")) + 1
    begins = np.concatenate(([0 if low == 0 else int(ends[low - 1])], ends[low : high - 1]))
    lengths = np.minimum(ends[low:high], stop) - np.maximum(begins, start)
    picked = np.repeat(np.arange(low, high), lengths)
    number = np.arange(start, stop) - np.repeat(begins, lengths)
    needles = combinations.needles[picked]
    indices: list[Int64Array] = [combinations.rows[picked]] * len(combinations.matched)
    for other in reversed(range(len(combinations.matched))):
        matched = combinations.matched[other]
        if matched is None:
            continue
        number, digits = np.divmod(number, matched.counts[needles])
        indices[other] = matched.rows(needles, digits)
    return Chunk(combinations, tuple(indices))


def verify(piece: Chunk, key_columns: Sequence[Sequence[int]]) -> Chunk:
    """Only the results whose keys are really equal; needed where hashes collide."""
    driving = piece.combinations.input
    keep = np.ones(piece.rows, dtype=np.bool_)
    for other, columns in enumerate(key_columns):
        if other == driving:
            continue
        for mine, theirs in zip(key_columns[driving], columns, strict=True):
            keep &= _equal(piece.column(driving, mine), piece.column(other, theirs))
    return piece.filter(pa.array(keep))


def _first_of_each(hashes: Int64Array) -> Int64Array:
    """The position of the first row of each distinct hash of a sorted array."""
    if not len(hashes):
        return np.empty(0, dtype=np.int64)
    return np.concatenate(([0], np.flatnonzero(hashes[1:] != hashes[:-1]) + 1))


def _ranges(
    segments: Sequence[SortedRows], needles: Int64Array, needle_groups: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Per segment and needle, where its matching rows begin and how many there are."""
    lows = np.zeros((len(segments), len(needles)), dtype=np.int64)
    counts = np.zeros((len(segments), len(needles)), dtype=np.int64)
    for number, segment in enumerate(segments):
        if not segment.rows:
            continue
        low = np.searchsorted(segment.hashes, needles)
        found = segment.hashes[np.minimum(low, segment.rows - 1)] == needles
        if segment.live is not None:
            found &= segment.live[needle_groups]
        hits = np.flatnonzero(found)
        lows[number] = low
        counts[number, hits] = np.searchsorted(segment.hashes, needles[hits], side="right") - low[hits]
    return lows, counts


def _match(
    segments: Sequence[SortedRows], lows: Int64Array, counts: Int64Array, *, copied: bool
) -> Matched | Located:
    if copied:
        return _gather(segments, lows, counts)
    sizes = np.array([segment.rows for segment in segments], dtype=np.int64)
    return Located(
        segments=tuple(segment.columns for segment in segments),
        offsets=np.cumsum(sizes) - sizes,
        lows=lows,
        ends=np.cumsum(counts, axis=0),
        counts=counts.sum(axis=0),
    )


def _gather(segments: Sequence[SortedRows], lows: Int64Array, counts: Int64Array) -> Matched:
    """Copy the matching rows of all segments into one batch."""
    per_needle = counts.sum(axis=0)
    starts = np.cumsum(per_needle) - per_needle
    used = [number for number in range(len(segments)) if counts[number].any()]
    all_needles = np.arange(counts.shape[1])
    columns = concat(
        [take(segments[number].columns, _expand(lows[number], counts[number])) for number in used]
    )
    if len(used) == 1:
        return Matched(columns, starts, per_needle, None, np.repeat(all_needles, per_needle))
    order = np.empty(int(per_needle.sum()), dtype=np.int64)
    before = starts.copy()
    done = 0
    for number in used:
        rows = int(counts[number].sum())
        order[_expand(before, counts[number])] = np.arange(done, done + rows)
        before += counts[number]
        done += rows
    needles = np.concatenate([np.repeat(all_needles, counts[number]) for number in used])
    return Matched(columns, starts, per_needle, order, needles)


def _expand(starts: Int64Array, counts: Int64Array) -> Int64Array:
    """starts[0], starts[0] + 1, ... (counts[0] of them), starts[1], ..."""
    offsets = np.cumsum(counts) - counts
    return np.repeat(starts - offsets, counts) + np.arange(int(counts.sum()))


@dataclass(frozen=True, slots=True)
class _Keys:
    """The key of each needle: that of its first driving row."""

    driver: SortedRows
    representatives: Int64Array
    columns: Sequence[Sequence[int]]
    input: int

    def differ(
        self, rows: Int64Array, needles: Int64Array, matched: Sequence[Matched | Located | None]
    ) -> bool:
        """Whether any of these rows has, or may have, another key than its needle, though the same hash."""
        if any(isinstance(matches, Located) for matches in matched):
            return True
        for number, column in enumerate(self.columns[self.input]):
            keys = self.driver.columns.column(column)
            heads = keys.take(pa.array(self.representatives))
            if not _equal(keys.take(pa.array(rows)), heads.take(pa.array(needles))).all():
                return True
            for other, matches in enumerate(matched):
                if not isinstance(matches, Matched):
                    continue
                theirs = matches.columns.column(self.columns[other][number])
                if not _equal(theirs, heads.take(pa.array(matches.needles))).all():
                    return True
        return False


def _value_bytes(batches: Sequence[pa.RecordBatch], column: int) -> float:
    rows = sum(batch.num_rows for batch in batches)
    return float(sum(batch.column(column).nbytes for batch in batches) / max(1, rows))


def _equal(left: pa.Array, right: pa.Array) -> np.typing.NDArray[np.bool_]:
    if pa.types.is_floating(left.type):
        bits = pa.int32() if left.type.bit_width == 32 else pa.int64()
        left, right = left.view(bits), right.view(bits)
    return np.asarray(pc.equal(left, right).to_numpy(zero_copy_only=False), dtype=np.bool_)
