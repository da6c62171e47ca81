"""Counts the groups upstream that rows came through: of all rows, or of a sample of one in N.

A sample costs less where results are many, and is as good as it is large: of a count n made of one row in k
the standard error is sqrt((k - 1) / n) of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import median

import numpy as np

from spillway.plan.expression import ColumnRef
from spillway.state.rows import Int64Array

_SPREAD = 0x9E3779B1


@dataclass(frozen=True, slots=True)
class Lineage:
    """An operator upstream, by the number of its first group, and the column with its group numbers."""

    first: int
    groups: int
    column: ColumnRef


class LineageCounter:
    """Of one attempt. Where a sample begins differs by epoch: else few rows would count as many."""

    def __init__(self, groups: int, one_in: int = 1, sequence: int = 0) -> None:
        self._groups = groups
        self._one_in = one_in
        self._next = (sequence * _SPREAD & 0xFFFFFFFF) % one_in

    def count(self, numbers: Int64Array) -> Int64Array:
        """Rows per group, given the group number of each."""
        sampled = numbers[self._next :: self._one_in]
        self._next = (self._next - len(numbers)) % self._one_in
        return np.bincount(sampled, minlength=self._groups) * self._one_in


def typical_error(counts: Iterable[int], one_in: int) -> float:
    """The standard error, as a share, of the count in the middle of these."""
    known = [count for count in counts if count > 0]
    return sqrt((one_in - 1) / median(known)) if known else 0.0
