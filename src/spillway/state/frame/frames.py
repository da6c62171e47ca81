"""Rows side by side by key, in the order of their key, and where the frame of each row begins and ends.

Keys of equal hash are told apart: rows are first sorted by hash and order, and if neighbours of one hash
have different keys, by the keys too. Nulls come first, as in Spark; a null key is a key like others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.model import Frame
from spillway.state.rows import BoolArray, Int64Array

SortKey = np.typing.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class OrderedRows:
    rows: Int64Array
    """The positions of the rows as given, in order."""
    begins: Int64Array
    """Per row in order, where the rows of its key begin."""
    ends: Int64Array
    """Per row in order, where the rows of its key end."""
    times: Int64Array
    """Per row in order, its event time."""

    def bounds(self, frame: Frame, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Where the frames of the rows at these places begin and end."""
        if frame.kind == "rows":
            return np.maximum(self.begins[at], at - frame.preceding), at + 1
        times = self.times
        starts = self._search(self.begins[at], at, times[at] - frame.preceding)
        return starts, self._peers_end(at)

    def _peers_end(self, at: Int64Array) -> Int64Array:
        """Per row the place after the last row of its key and time."""
        changes = np.flatnonzero((self.times[1:] != self.times[:-1]) | (self.begins[1:] != self.begins[:-1]))
        ends = np.append(changes + 1, len(self.times))
        return ends[np.searchsorted(changes, at, side="left")]

    def _search(self, low: Int64Array, high: Int64Array, times: Int64Array) -> Int64Array:
        """Per row the first place from `low` whose time is not earlier; `high` if there is none before."""
        low, high = low.copy(), high.copy()
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) >> 1
            earlier = self.times[middle] < times[open_]
            low[open_[earlier]] = middle[earlier] + 1
            high[open_[~earlier]] = middle[~earlier]
            open_ = open_[low[open_] < high[open_]]
        return low

    def needed(self, rows: int | Int64Array, since: int | None) -> BoolArray:
        """Per row in order, whether it is one of the last `rows` of its key, or not older than `since`."""
        stays: BoolArray = np.arange(len(self.rows)) >= self.ends - rows
        return stays if since is None else stays | (self.times >= since)


def ordered_rows(
    hashes: Int64Array,
    columns: pa.RecordBatch,
    keys: Sequence[int],
    time: int,
    order: Sequence[int],
) -> OrderedRows:
    """The rows by (key, event time, the columns `order`); rows that are equal in these stay as they are."""
    times: Int64Array = columns.column(time).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    by = [part for column in order for part in _sort_keys(columns.column(column))]
    rows = np.lexsort((*reversed(by), times, hashes))
    parts = [columns.column(column) for column in keys]
    differ = _neighbours_differ(parts, rows)
    new_hash = hashes[rows][1:] != hashes[rows][:-1]
    if (differ & ~new_hash).any():
        codes = [_codes(part) for part in parts]
        rows = np.lexsort((*reversed(by), times, *reversed(codes), hashes))
        differ = _neighbours_differ(parts, rows)
        new_hash = hashes[rows][1:] != hashes[rows][:-1]
    cuts = np.flatnonzero(differ | new_hash) + 1
    firsts = np.concatenate(([0], cuts, [len(rows)])).astype(np.int64)
    sizes = np.diff(firsts)
    return OrderedRows(
        rows.astype(np.int64, copy=False),
        np.repeat(firsts[:-1], sizes),
        np.repeat(firsts[1:], sizes),
        times[rows],
    )


def order_codes(array: pa.Array) -> Int64Array:
    """Whole numbers in the order of the values; what stands for a null means nothing.

    Those of integers are the values themselves. NaN is larger than any number and equal to itself.
    """
    kind = array.type
    if pa.types.is_floating(kind):
        values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan
        bits = values.view(np.int64)
        codes = bits ^ ((bits >> 63) & np.int64(np.iinfo(np.int64).max))
    elif pa.types.is_integer(kind):
        codes = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    else:
        codes = pc.rank(array, sort_keys="ascending", tiebreaker="dense").to_numpy()
    return np.asarray(codes, dtype=np.int64)


def _sort_keys(array: pa.Array) -> list[SortKey]:
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    codes = order_codes(array)
    return [codes] if valid.all() else [valid, np.where(valid, codes, 0)]


def _bits(array: pa.Array) -> pa.Array:
    """The array with floats as their bits, which are equal where values of a key are."""
    if pa.types.is_floating(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array


def keys_differ(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int) -> BoolArray:
    """Per row whether its key, given in parts, differs on the two sides; null equals null."""
    differ = np.zeros(rows, dtype=np.bool_)
    for mine, theirs in zip(map(_bits, left), map(_bits, right), strict=True):
        unequal = pc.fill_null(pc.not_equal(mine, theirs), False).to_numpy(zero_copy_only=False)
        differ |= unequal | pc.not_equal(mine.is_null(), theirs.is_null()).to_numpy(zero_copy_only=False)
    return differ


def _neighbours_differ(parts: Sequence[pa.Array], rows: Int64Array) -> BoolArray:
    """Per pair of neighbours, whether their keys differ."""
    pairs = max(0, len(rows) - 1)
    taken = [part.take(pa.array(rows)) for part in parts]
    return keys_differ([part.slice(0, pairs) for part in taken], [part.slice(1) for part in taken], pairs)


def _codes(part: pa.Array) -> Int64Array:
    indices = _bits(part).dictionary_encode().indices
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
