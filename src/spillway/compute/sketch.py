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
"""A column in one of Spark's own rows: a value, or the address of one."""
LEAST_MATCHES = 100
"""With this many matches, two samples estimate the size of a join within about a tenth."""
BUCKETS = 8192
"""Counters per column: 64 KB. Two columns of 100,000 different keys join within about 1,100 rows."""


@dataclass(frozen=True, slots=True)
class KeySketch:
    """A key column as one pass or a sample saw it."""

    counters: npt.NDArray[np.float64] | None
    """Of all rows; from a sample, scaled. None if the sampled rows do not represent the others."""
    rows: int
    """Rows whose key is not null."""
    distinct: float
    domain: float | None = None
    """Distinct keys before the relation's filters; None: as many as after them."""
    share: float = 1.0
    """The share of rows that were read."""

    @property
    def keys_before_filters(self) -> float:
        return max(self.distinct if self.domain is None else self.domain, 1.0)


@dataclass(frozen=True, slots=True)
class RelationStatistics:
    """A relation after its filters, as one pass or a sample saw it; `keys` by column name."""

    rows: int
    row_bytes: float
    keys: Mapping[str, KeySketch]
    tasks: int = 0
    """How many of the tasks that read the relation found rows."""


def join_rows(left: KeySketch, right: KeySketch) -> float:
    """Expected rows of the join of two columns.

    Below the sketch's own error an estimate by distinct values is better: it is never zero, and never more
    than the error says. If samples have too few matches, or there are no samples, every key of the side with
    fewer keys is assumed to be on the other side, too.
    """
    if left.rows == 0 or right.rows == 0:
        return 0.0
    contained = left.rows * right.rows / max(left.keys_before_filters, right.keys_before_filters)
    if left.counters is None or right.counters is None:
        return contained
    product = float(left.counters @ right.counters)
    error = sqrt(_self_join(left.counters, left.rows) * _self_join(right.counters, right.rows) / BUCKETS)
    share = left.share * right.share
    if product > 2 * error and (share >= 1 or product * share >= LEAST_MATCHES):
        return product
    if share < 1:
        return contained
    by_distinct = left.rows * right.rows / max(left.distinct, right.distinct, 1.0)
    return min(by_distinct, max(product, 0.0) + error)


def selectivity(left: KeySketch, right: KeySketch, left_rows: int, right_rows: int) -> float:
    """The share of the product of two relations that joins; nulls never do."""
    product = left_rows * right_rows
    return min(1.0, join_rows(left, right) / product) if product else 0.0


def _self_join(counters: npt.NDArray[np.float64], rows: int) -> float:
    return max(float(counters @ counters), float(rows))
