"""Join sizes from sketches: one small vector per key column, made in one pass (fast AGMS).

Each row adds +1 or -1 to one of `BUCKETS` counters; counter and sign come from the hash of its key. The inner
product of two vectors is the size of the join of the two columns, on average exactly, with an error of about
sqrt(F2 * F2 / BUCKETS), where F2 is a column's size joined with itself. So skew is seen, and so is a
domain of which neither side has all values, which counts of distinct values alone would miss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

SLOT_BYTES = 8
"""A column of one of Spark's own rows: a value, or where it is."""
BUCKETS = 8192
"""Counters per column: 64 KB. Two columns of 100,000 different keys join within about 1,100 rows."""


@dataclass(frozen=True, slots=True)
class KeySketch:
    """What one pass saw of a key column."""

    counters: npt.NDArray[np.float64]
    rows: int
    """Rows whose key is not null."""
    distinct: float


@dataclass(frozen=True, slots=True)
class RelationStatistics:
    """What one pass saw of a relation, after its filters; `keys` by column name."""

    rows: int
    row_bytes: float
    keys: Mapping[str, KeySketch]
    tasks: int = 0
    """Of those that read the relation, how many found rows."""


def join_rows(left: KeySketch, right: KeySketch) -> float:
    """Expected rows of the join of two columns.

    Below the sketch's own error an estimate by distinct values is the better one: it is never zero, and never
    more than the error says.
    """
    if left.rows == 0 or right.rows == 0:
        return 0.0
    product = float(left.counters @ right.counters)
    error = sqrt(_self_join(left) * _self_join(right) / BUCKETS)
    if product > 2 * error:
        return product
    by_distinct = left.rows * right.rows / max(left.distinct, right.distinct, 1.0)
    return min(by_distinct, max(product, 0.0) + error)


def selectivity(left: KeySketch, right: KeySketch, left_rows: int, right_rows: int) -> float:
    """The share of the product of two relations that joins; nulls never do."""
    product = left_rows * right_rows
    return min(1.0, join_rows(left, right) / product) if product else 0.0


def _self_join(one: KeySketch) -> float:
    return max(float(one.counters @ one.counters), float(one.rows))
