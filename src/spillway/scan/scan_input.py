"""How the rows of one input become wire rows: filter, keys in their normal form, hash, state columns.

A plain value that is pickled to tasks. It does what `spark/stream/wire.py` and `tree_wire.py` ask Spark to
do, and in the same order: the filter, then the keys, then rows without a key are dropped, then the state
columns; so an expression fails on no row that Spark would drop before. Last, rows are copied where joins
share a partitioning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import EvaluationError, ViewError
from spillway.plan.expression import ColumnRef, Expression, arrow_type, evaluate, promote
from spillway.state.rows import Int64Array, folded, group_of, group_starts, hash_in_group, xxhash64
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column of the source that is read."""

    number: int
    """Its place among the source's columns, by which expressions refer to it."""
    name: str
    type: str
    """As Spark writes it."""

    @property
    def arrow(self) -> pa.DataType:
        return arrow_type(self.type)


@dataclass(frozen=True, slots=True)
class ScanKey:
    """A part of the key, and the Spark type in which it is compared."""

    value: Expression
    type: str


@dataclass(frozen=True, slots=True)
class WireKey:
    """A state column that holds a part of the key, given by its place among the parts."""

    part: int


@dataclass(frozen=True, slots=True)
class WireKeyHash:
    """A state column that holds the hash of one part of the key."""

    part: int


@dataclass(frozen=True, slots=True)
class EventMicros:
    """A state column that holds the microseconds since 1970 of a timestamp."""

    value: Expression


@dataclass(frozen=True, slots=True)
class GroupCopies:
    """The groups of a row where several joins share one partitioning (`plan.operators.Grid`)."""

    groups: int
    coordinates: tuple[tuple[int, int, int], ...]
    """Per part of the key that the grid has: the part, its share of the grid, and its weight."""
    offsets: tuple[int, ...]
    """What to add for each copy: all coordinates that the row does not have."""

    def of(self, keys: Sequence[pa.Array], rows: int) -> Int64Array:
        """The groups of each row, one row after the other."""
        first = np.zeros(rows, np.int64)
        for part, share, weight in self.coordinates:
            first += group_of(xxhash64([keys[part]]), share) * weight
        return (first[:, np.newaxis] + np.array(self.offsets, np.int64)).reshape(-1)


SlotSource: TypeAlias = Expression | WireKey | WireKeyHash | EventMicros


@dataclass(frozen=True, slots=True)
class ScanInput:
    name: str
    """Of the input, for messages."""
    tag: int
    columns: tuple[ScanColumn, ...]
    filter: Expression | None
    keys: tuple[ScanKey, ...]
    hashed: tuple[tuple[int, ...], ...]
    """Parts of the key that are hashed together; the hashes are folded to one."""
    slots: tuple[tuple[str, SlotSource], ...]
    """Per state column its slot on the wire, and its value."""
    null_keys: bool = False
    """Whether null is a key like any other."""
    copies: GroupCopies | None = None
    """Where a row goes to several groups; None: to the one of its hash."""

    def wire_rows(self, columns: Sequence[pa.Array], rows: int) -> pa.RecordBatch:
        """The wire rows of `rows` rows, given by the arrays of `self.columns` in their declared types."""
        batch = _Rows(self, columns, rows)
        if self.filter is not None:
            batch = batch.only(pc.fill_null(batch.value(self.filter), False))
        keys = [normal_key(batch.value(key.value), key.type) for key in self.keys]
        if not self.null_keys and any(key.null_count for key in keys):
            present = keys[0].is_valid()
            for key in keys[1:]:
                present = pc.and_(present, key.is_valid())
            batch, keys = batch.only(present), [key.filter(present) for key in keys]
        hashes = folded([xxhash64([keys[part] for part in parts]) for parts in self.hashed])
        arrays = [_slot(source, batch, keys) for _, source in self.slots]
        if self.copies is not None:
            groups = self.copies.of(keys, batch.count)
            rows_copied = np.repeat(np.arange(batch.count), len(self.copies.offsets))
            hashes = hash_in_group(group_starts(self.copies.groups)[groups], hashes[rows_copied])
            arrays = [array.take(pa.array(rows_copied)) for array in arrays]
        tags = np.full(len(hashes), self.tag, np.int8)
        names = [TAG_COLUMN, HASH_WIRE_COLUMN, *(slot for slot, _ in self.slots)]
        return pa.RecordBatch.from_arrays([pa.array(tags), pa.array(hashes), *arrays], names=names)


def normal_key(values: pa.Array, type_: str) -> pa.Array:
    """Key values in the type in which they are compared; equal keys have one bit pattern."""
    values = promote(values, arrow_type(type_))
    if not pa.types.is_floating(values.type):
        return values
    with np.errstate(invalid="ignore"):  # a NaN that signals
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False) + np.float32(0)  # no negative zero
    numbers[np.isnan(numbers)] = np.nan
    made = pa.array(numbers, values.type)
    return pc.if_else(values.is_valid(), made, pa.scalar(None, values.type)) if values.null_count else made


def _slot(source: SlotSource, batch: _Rows, keys: Sequence[pa.Array]) -> pa.Array:
    if isinstance(source, WireKey):
        return keys[source.part]
    if isinstance(source, WireKeyHash):
        hashes: Int64Array = xxhash64([keys[source.part]])
        return pa.array(hashes)
    if isinstance(source, EventMicros):
        return pc.cast(batch.value(source.value), pa.int64())
    return batch.value(source)


class _Rows:
    """Rows of the source, as far as they passed."""

    __slots__ = ("_columns", "_input", "_places", "count")

    def __init__(self, input_: ScanInput, columns: Sequence[pa.Array], count: int) -> None:
        self._input = input_
        self._columns = columns
        self._places = {column.number: place for place, column in enumerate(input_.columns)}
        self.count = count

    def value(self, expression: Expression) -> pa.Array:
        try:
            return evaluate(expression, self._column, self.count, self._label)
        except ViewError as error:
            raise EvaluationError(f"input {self._input.name}: {error}") from None

    def only(self, mask: pa.Array) -> _Rows:
        count = pc.sum(mask, min_count=0).as_py() or 0
        if count == self.count:
            return self
        return _Rows(self._input, [column.filter(mask) for column in self._columns], count)

    @property
    def _column(self) -> Callable[[ColumnRef], pa.Array]:
        return lambda ref: self._columns[self._places[ref.column]]

    def _label(self, ref: ColumnRef) -> str:
        return self._input.columns[self._places[ref.column]].name
