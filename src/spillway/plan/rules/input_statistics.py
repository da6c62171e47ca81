"""What the choice of a tree asks about the inputs of a view, and what is answered.

Whoever plans a view may pass a function that knows its sources; the planner calls it only where there is a
choice. It answers for all inputs, or says what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class AskedInput:
    """An input of the view: Spark SQL over the columns of its source."""

    name: str
    source: str
    filter: str | None
    keys: Mapping[int, str]
    """By class of equal terms, the input's own term."""


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """The rows of an input, and how many values each of its keys has."""

    rows: float
    """Those that pass the filter."""
    all_rows: float
    """Before the filter."""
    distinct: Mapping[int, float]
    """By class, the values of the input's term before the filter; a class that is not known is missing."""


@dataclass(frozen=True, slots=True)
class NoStatistics:
    """Some input is not known."""

    why: str


Statistics: TypeAlias = Callable[[Sequence[AskedInput]], Sequence[InputStatistics] | NoStatistics]
