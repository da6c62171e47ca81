"""Rows of some groups with the generation that each belongs to, and the combinations that they miss.

At run time a generation has said all combinations of its own rows. So a group misses the combinations of rows
of different generations, and every combination with an unsaid row: one that was only written. `missing` joins
the rows of a range of hashes at once: labels say the generation, and hashes whose rows are all of one said
generation are left out before any column is read.

Invariant: rows of one hash are in the order of their runs, so combinations have an order that does not depend
on which range they were joined in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from spillway.state.join.hash_ranges import Slices
from spillway.state.join.labels import UNSAID, Int32Array, Labels
from spillway.state.join.matches import InPlace
from spillway.state.join.probe import Combinations, combinations
from spillway.state.join.search import expanded, first_of_each
from spillway.state.rows import Int64Array, SortedRows, rows_only


@dataclass(frozen=True)
class RangeRows:
    """The rows of one input in a range of hashes, in hash order; their columns stay in the runs."""

    parts: tuple[pa.RecordBatch, ...]
    hashes: Int64Array
    labels: Int32Array
    order: Int64Array
    """Where each row is, if all parts lay one behind the other."""

    @classmethod
    def of(cls, slices: Slices) -> "RangeRows":
        parts = tuple(rows.columns for rows in slices.rows)
        if not parts:
            nothing = np.empty(0, dtype=np.int64)
            return cls((), nothing, np.empty(0, dtype=np.int32), nothing)
        together = np.concatenate([rows.hashes for rows in slices.rows])
        order = np.argsort(together, kind="stable")
        return cls(parts, together[order], slices.labels[order], order)

    @cached_property
    def first(self) -> Int64Array:
        """The position of the first row of each hash."""
        return first_of_each(self.hashes)

    @property
    def counts(self) -> Int64Array:
        """The rows of each hash."""
        return np.diff(self.first, append=len(self.hashes))

    def columns(self, rows: Int64Array, sample: Callable[[], None]) -> pa.RecordBatch:
        """Some rows, copied column by column."""
        schema = self.parts[0].schema
        if not len(schema):
            return rows_only(len(rows))
        where = pa.array(self.order[rows])
        table = pa.Table.from_batches(self.parts)
        columns = []
        for number in range(len(schema)):
            together = table.column(number).combine_chunks()
            columns.append(together.take(where))
            sample()
            del together
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def missing(
    inputs: Sequence[RangeRows], key_columns: Sequence[Sequence[int]], sample: Callable[[], None]
) -> Combinations | None:
    """The combinations of the hashes that miss any; input 0 drives. None: there are none.

    Combinations of a single said generation are among them, and are to be dropped by their labels.
    """
    if not all(len(rows.hashes) for rows in inputs):
        return None
    needles = inputs[0].hashes[inputs[0].first]
    at = [np.arange(len(needles))]
    for rows in inputs[1:]:
        distinct = rows.hashes[rows.first]
        index = np.minimum(np.searchsorted(distinct, needles), len(distinct) - 1)
        hit = np.flatnonzero(distinct[index] == needles)
        needles = needles[hit]
        at = [*(before[hit] for before in at), index[hit]]
    split = _split(inputs, at)
    if not len(split):
        return None
    sample()
    chosen = [_Chosen.of(rows, index[split], sample) for rows, index in zip(inputs, at, strict=True)]
    driver = SortedRows(np.repeat(needles[split], chosen[0].counts), chosen[0].columns)
    matched = (None, *(rows.matches() for rows in chosen[1:]))
    labels = tuple(Labels(rows.labels) for rows in chosen)
    return combinations(driver, 0, chosen[0].starts, chosen[0].counts, matched, key_columns, labels)


def _split(inputs: Sequence[RangeRows], at: Sequence[Int64Array]) -> Int64Array:
    """Those of the common hashes whose rows are not all of one said generation."""
    found = list(zip(inputs, at, strict=True))
    least = np.minimum.reduce([np.minimum.reduceat(rows.labels, rows.first)[index] for rows, index in found])
    most = np.maximum.reduce([np.maximum.reduceat(rows.labels, rows.first)[index] for rows, index in found])
    return np.flatnonzero((least < most) | (least == UNSAID))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The rows of some hashes of one input, those of a hash side by side."""

    columns: pa.RecordBatch
    labels: Int32Array
    starts: Int64Array
    counts: Int64Array

    @classmethod
    def of(cls, rows: RangeRows, index: Int64Array, sample: Callable[[], None]) -> "_Chosen":
        counts = rows.counts[index]
        positions = expanded(rows.first[index], counts)
        columns = rows.columns(positions, sample)
        return cls(columns, rows.labels[positions], np.cumsum(counts) - counts, counts)

    def matches(self) -> InPlace:
        return InPlace(self.columns, self.starts, self.counts, few=True)
