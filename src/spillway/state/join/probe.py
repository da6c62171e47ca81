"""The vectorised probe of an m-way join: which combinations of state rows does each driving row have?

`probe` takes the driving rows (one input's delta, in hash order) and the segments of every other input, and
finds by binary search the matching rows of each. Nothing is expanded yet: `Combinations` knows how many
results each driving row has, and `chunk` expands any interval of them, in a fixed order, in mixed radix: the
last input varies fastest, the matches of one input are ordered by segment and position.

Invariant: the order of the combinations of a driving row depends only on the contents of the segments in
their order, not on how the rows are cut into segments (merging is stable). So a probe may stop after any
number of results and go on in another process.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.plan.expression import ColumnRef
from spillway.state.join.labels import UNSAID, Labels
from spillway.state.join.matches import Gathering, Located, Matches, matches_of, mean_bytes
from spillway.state.join.search import Hits, expanded, first_of_each, rows_per_needle, search
from spillway.state.rows import Int64Array, SortedRows

MAX_RESULTS_OF_ROW = 1 << 62
"""More combinations than this for one row are counted as this many; nobody will see the last one."""
NO_LIMIT, NOTHING_COPIED = Gathering(), Gathering(0)


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
    matched: tuple[Matches | None, ...]
    """Per input; None for the driving one."""
    collisions: bool
    """Whether rows of different keys share a hash here, so that chunks must be verified."""
    labels: tuple[Labels, ...] | None = None
    """Per input; in a clean-up, where combinations of a single said generation are out already."""

    @property
    def total(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def is_copied(self) -> bool:
        """Whether the matches of every input are in one segment or side by side, and fast to expand."""
        return not any(isinstance(matches, Located) for matches in self.matched)

    def value_bytes(self, input_: int, column: int) -> float:
        """The mean size of a value of the results, as far as it can be told before they are expanded."""
        matched = self.matched[input_]
        return mean_bytes([self.driver.columns], column) if matched is None else matched.value_bytes(column)

    def number(self, row: int, emitted: int) -> int:
        """The number of the combination that follows `emitted` ones of a row, which has some."""
        return (int(self.ends[row - 1]) if row else 0) + emitted

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

    def unsaid(self, labels: Sequence[Labels]) -> "Chunk":
        """Those that are not combinations of a single said generation."""
        first, *others = (of_input.of(rows) for of_input, rows in zip(labels, self.indices, strict=True))
        keep = first == UNSAID
        for label in others:
            keep |= label != first
        return self if keep.all() else self._at(np.flatnonzero(keep))

    def filter(self, keep: pa.Array) -> "Chunk":
        return self._at(np.flatnonzero(keep.fill_null(False).to_numpy(zero_copy_only=False)))

    def _at(self, chosen: Int64Array) -> "Chunk":
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
    first = first_of_each(driver.hashes)
    needles = driver.hashes[first]
    kept = np.arange(len(needles))
    found: dict[int, list[Hits]] = {}
    for other in range(len(segments)):
        if other == input_:
            continue
        found[other] = search(segments[other], needles[kept], groups)
        hit = np.flatnonzero(rows_per_needle(found[other], len(kept)))
        if len(hit) < len(kept):
            numbers = np.full(len(kept), -1, dtype=np.int64)
            numbers[hit] = np.arange(len(hit))
            found = {key: [part.renumbered(numbers) for part in parts] for key, parts in found.items()}
            kept = kept[hit]
        if not len(kept):
            break
    return _combine(driver, input_, segments, first, kept, found, key_columns, gathering)


def _combine(
    driver: SortedRows,
    input_: int,
    segments: Sequence[Sequence[SortedRows]],
    first: Int64Array,
    kept: Int64Array,
    found: dict[int, list[Hits]],
    key_columns: Sequence[Sequence[int]],
    gathering: Gathering,
) -> Combinations:
    if not len(kept):
        nothing = np.empty(0, dtype=np.int64)
        return Combinations(driver, input_, nothing, nothing, nothing, (None,) * len(segments), False)
    matched = tuple(
        None
        if other == input_
        else matches_of(of_input, found[other], len(kept), few=gathering.has_room(other, found[other]))
        for other, of_input in enumerate(segments)
    )
    repeats = np.diff(np.append(first, driver.rows))[kept]
    return combinations(driver, input_, first[kept], repeats, matched, key_columns)


def combinations(
    driver: SortedRows,
    input_: int,
    first: Int64Array,
    repeats: Int64Array,
    matched: tuple[Matches | None, ...],
    key_columns: Sequence[Sequence[int]],
    labels: tuple[Labels, ...] | None = None,
) -> Combinations:
    """The combinations of needles whose driving rows, `repeats` of each, begin at `first`."""
    product = np.ones(len(first))
    for matches in matched:
        if matches is not None:
            product *= matches.counts
    results = np.minimum(product, MAX_RESULTS_OF_ROW).astype(np.int64)
    rows = expanded(first, repeats)
    needles = np.repeat(np.arange(len(first)), repeats)
    # A caller stops long before 2^62 results, so rows beyond that many need no number.
    countable = max(1, int(np.searchsorted(np.cumsum(product[needles]), MAX_RESULTS_OF_ROW)))
    rows, needles = rows[:countable], needles[:countable]
    keys = _Keys(driver, first, key_columns, input_)
    collisions = bool(key_columns[input_]) and keys.differ(rows, needles, matched)
    ends = np.cumsum(results[needles])
    return Combinations(driver, input_, rows, needles, ends, matched, collisions, labels)


def chunk(found: Combinations, start: int, stop: int) -> Chunk:
    """The results number `start` to `stop` of the block, in its fixed order."""
    ends = found.ends
    low = int(np.searchsorted(ends, start, side="right"))
    high = int(np.searchsorted(ends, stop, side="left")) + 1
    begins = np.concatenate(([0 if low == 0 else int(ends[low - 1])], ends[low : high - 1]))
    lengths = np.minimum(ends[low:high], stop) - np.maximum(begins, start)
    picked = np.repeat(np.arange(low, high), lengths)
    number = np.arange(start, stop) - np.repeat(begins, lengths)
    needles = found.needles[picked]
    indices: list[Int64Array] = [found.rows[picked]] * len(found.matched)
    others = [(other, matched) for other, matched in enumerate(found.matched) if matched is not None]
    for other, matched in others[:0:-1]:
        number, digits = np.divmod(number, matched.counts[needles])
        indices[other] = matched.rows(needles, digits)
    first, matched = others[0]
    indices[first] = matched.rows(needles, number)  # less than its count
    return Chunk(found, tuple(indices))


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


@dataclass(frozen=True, slots=True)
class _Keys:
    """The key of each needle: that of its first driving row."""

    driver: SortedRows
    representatives: Int64Array
    columns: Sequence[Sequence[int]]
    input: int

    def differ(self, rows: Int64Array, needles: Int64Array, matched: Sequence[Matches | None]) -> bool:
        """Whether any of these rows has, or may have, another key than its needle, though the same hash."""
        if any(matches is not None and not matches.few for matches in matched):
            return True
        for number, column in enumerate(self.columns[self.input]):
            keys = self.driver.columns.column(column)
            heads = keys.take(pa.array(self.representatives))
            if not _equal(keys.take(pa.array(rows)), heads.take(pa.array(needles))).all():
                return True
            for other, matches in enumerate(matched):
                if matches is None or isinstance(matches, Located):
                    continue
                theirs, of = matches.with_needles(self.columns[other][number])
                if not _equal(theirs, heads.take(pa.array(of))).all():
                    return True
        return False


def _equal(left: pa.Array, right: pa.Array) -> np.typing.NDArray[np.bool_]:
    if pa.types.is_floating(left.type):
        bits = pa.int32() if left.type.bit_width == 32 else pa.int64()
        left, right = left.view(bits), right.view(bits)
    return np.asarray(pc.equal(left, right).to_numpy(zero_copy_only=False), dtype=np.bool_)
