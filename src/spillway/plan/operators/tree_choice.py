"""Why a plan has its tree: the estimates that chose it, those of the next best tree, or that there were none.

Plain values for `explain`; they are no part of a plan's fingerprint. Rows are estimates over all input that
is there when the view is planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Shape: TypeAlias = "str | tuple[Shape, ...]"
"""A tree as the user gives it: nested tuples of input names."""


@dataclass(frozen=True, slots=True)
class JoinSize:
    """What one join is expected to do."""

    candidates: float
    """Combinations of rows that agree in the join's key, before its residual predicate."""
    results: float


@dataclass(frozen=True, slots=True)
class SizedTree:
    """A tree with the expected sizes of its joins, children before their parents."""

    shape: Shape
    joins: tuple[JoinSize, ...]

    @property
    def candidates(self) -> float:
        return sum(join.candidates for join in self.joins)

    @property
    def kept_rows(self) -> float:
        """Results that joins above keep as state."""
        return sum(join.results for join in self.joins[:-1])

    @property
    def work(self) -> float:
        """What trees are compared by."""
        return self.candidates + self.kept_rows


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """How a tree came about. Without statistics there are no sizes."""

    why: str
    chosen: SizedTree | None = None
    runner_up: SizedTree | None = None
    input_rows: tuple[float, ...] = ()
    """Per input, the rows that pass its filter."""
