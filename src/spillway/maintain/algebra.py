"""The local algebra on Arrow tables of signed rows: distinct keys, joins of deltas, equal rows summed.

Deltas are small, and Arrow's own operators answer in a millisecond where a SQL engine takes several to bind a
query; its join takes some milliseconds too, so a single integer key is joined by binary search. NULL never
equals anything in a join, and equals NULL when rows are summed. Above `THREADED_ROWS` rows Arrow's operators
use all cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spillway.maintain.delta import WEIGHT

THREADED_ROWS = 100_000
_STATE_WEIGHT = "state_weight"


class Algebra(Protocol):
    """The two operators whose cost grows with the deltas; others may do them elsewhere."""

    def join(self, delta: pa.Table, state: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table: ...

    def consolidate(self, table: pa.Table) -> pa.Table: ...


class ArrowAlgebra:
    """In this process."""

    def join(self, delta: pa.Table, state: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
        return join(delta, state, pairs)

    def consolidate(self, table: pa.Table) -> pa.Table:
        return consolidate(table)


class AlgebraBySize:
    """Small tables in this process, those of more than `rows` rows by `large`; the results are the same."""

    def __init__(self, large: Algebra, rows: int) -> None:
        self._small, self._large, self._rows = ArrowAlgebra(), large, rows

    def join(self, delta: pa.Table, state: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
        return self._of(delta.num_rows + state.num_rows).join(delta, state, pairs)

    def consolidate(self, table: pa.Table) -> pa.Table:
        return self._of(table.num_rows).consolidate(table)

    def _of(self, rows: int) -> Algebra:
        return self._large if rows > self._rows else self._small


def consolidate(table: pa.Table) -> pa.Table:
    """Equal rows as one with the sum of their weights; rows that cancel are gone."""
    table = canonical_rows(table)  # an expression may have made a negative zero
    names = [name for name in table.column_names if name != WEIGHT]
    summed = table.group_by(names, use_threads=table.num_rows > THREADED_ROWS).aggregate([(WEIGHT, "sum")])
    summed = summed.rename_columns(
        [WEIGHT if name == f"{WEIGHT}_sum" else name for name in summed.column_names]
    )
    return summed.filter(pc.not_equal(summed.column(WEIGHT), 0)).select([*names, WEIGHT])


def negated(table: pa.Table) -> pa.Table:
    """The same rows with the opposite sign."""
    place = table.column_names.index(WEIGHT)
    return table.set_column(place, WEIGHT, pc.negate(table.column(WEIGHT)))


def weighted(table: pa.Table) -> pa.Table:
    """Plain rows as a delta that inserts them."""
    return table.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))


def distinct(table: pa.Table) -> pa.Table:
    """Each row once, without rows that have a NULL."""
    present = table.drop_null()
    return present.group_by(present.column_names, use_threads=present.num_rows > THREADED_ROWS).aggregate([])


def fitting(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """`column` in the type `kind`; integers that do not fit become NULL."""
    if column.type == kind:
        return column
    if column.type.bit_width < kind.bit_width:
        return column.cast(kind)
    most = 2 ** (kind.bit_width - 1) - 1
    fits = pc.and_(pc.less_equal(column, most), pc.greater_equal(column, -most - 1))
    return pc.if_else(fits, column, pa.scalar(None, column.type)).cast(kind)


def canonical_rows(table: pa.Table) -> pa.Table:
    """The same rows with one zero and one NaN: SQL takes -0.0 for 0.0 and all NaNs for one value.

    Rows are canonical from where they enter (`ViewManager`), so all that comes later may go by their bits.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(place, field, canonical(table.column(place)))
    return table


def canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values whose bits are equal where SQL says that they are: -0.0 is 0.0, and a NaN is any other."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0, column.type)))


def comparable(left: pa.ChunkedArray, right: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Two key columns with the same type: integers of different width become 64 bits wide."""
    if left.type == right.type:
        return left, right
    return left.cast(pa.int64()), right.cast(pa.int64())


def equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where two columns are equal as keys; false where either is NULL."""
    left, right = comparable(left, right)
    same = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        same = pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return pc.fill_null(same, False)


def join(delta: pa.Table, state: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
    """All pairs of rows that are equal in `pairs` of columns; weights multiply. No columns: all pairs."""
    state = state.rename_columns([_STATE_WEIGHT if n == WEIGHT else n for n in state.column_names])
    ours, theirs = [delta.column(our) for our, _ in pairs], [state.column(their) for _, their in pairs]
    if len(pairs) == 1 and all(pa.types.is_integer(keys[0].type) for keys in (ours, theirs)):
        left, right = _matches(ours[0], theirs[0])
        rows, others = delta.take(left), state.take(right)
        columns = [*rows.columns, *others.columns]
        joined = pa.Table.from_arrays(columns, names=[*rows.column_names, *others.column_names])
    else:
        joined = _hash_join(delta, state, ours, theirs)
    weight = pc.multiply(joined.column(WEIGHT), joined.column(_STATE_WEIGHT))
    return joined.drop_columns([WEIGHT, _STATE_WEIGHT]).append_column(WEIGHT, weight)


def _matches(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The places of all pairs of equal integers, by binary search; NULL equals nothing."""
    left, right = _integers(ours), _integers(theirs)
    order = np.argsort(right[1], kind="stable")
    values = right[1][order]
    first = np.searchsorted(values, left[1], side="left")
    counts = np.searchsorted(values, left[1], side="right") - first
    starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
    found = order[starts + np.arange(len(starts))]
    return pa.array(np.repeat(left[0], counts)), pa.array(right[0][found])


def _integers(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of values that are not NULL, and the values."""
    places = np.flatnonzero(pc.is_valid(column).to_numpy(zero_copy_only=False))
    return places, column.drop_null().to_numpy().astype(np.int64, copy=False)


def _hash_join(
    delta: pa.Table, state: pa.Table, ours: Sequence[pa.ChunkedArray], theirs: Sequence[pa.ChunkedArray]
) -> pa.Table:
    """Any keys, by Arrow's own join; keys are columns of their own, because a column may be in two pairs."""
    left, right = list[str](), list[str]()
    if not ours:
        ours, theirs = (
            [pa.chunked_array([pa.repeat(pa.scalar(0), table.num_rows)])] for table in (delta, state)
        )
    for number, (our, their) in enumerate(map(comparable, ours, theirs)):
        delta = delta.append_column(f"left{number}", canonical(our))
        state = state.append_column(f"right{number}", canonical(their))
        left.append(f"left{number}")
        right.append(f"right{number}")
    joined = delta.join(
        state,
        left,
        right,
        join_type="inner",
        coalesce_keys=False,
        use_threads=delta.num_rows + state.num_rows > THREADED_ROWS,
    )
    return joined.drop_columns([*left, *right])
