"""Where the maintenance figures are run: servers for the beds of one figure, and how much is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.bench.maintain_bed import Bed, BedShape, open_bed
from spillway.maintain.plan import MaintenancePlan
from spillway.maintain.strategies import plan_round

Lines = dict[str, dict[str, float]]
"""The lines of a figure by label; each has values by place of the horizontal axis."""


@dataclass(slots=True)
class Laboratory:
    """Servers for the beds of one figure, and how much is run."""

    dsns: Sequence[str]
    scratch: Path
    rows: int
    repeats: int
    quick: bool
    note: Callable[[str], None]
    numbers: Iterator[int]

    @contextmanager
    def bed(self, shape: BedShape, **options: Any) -> Iterator[Bed]:
        self.note(f"creating {shape.relations} relations of {shape.rows:,} rows")
        with open_bed(shape, self.scratch / f"bed{next(self.numbers)}", self.dsns, **options) as bed:
            yield bed

    def some(self, values: Sequence[int]) -> Sequence[int]:
        """All places of the horizontal axis, or a few of them."""
        return values[:: max(1, len(values) // 2)][:3] if self.quick else values


def by_name(strategy: str, bed: Bed) -> Callable[[Sequence[int]], MaintenancePlan]:
    return lambda sizes: plan_round(strategy, bed.definition.graph, sizes)


def evenly(updates: int, sources: int) -> list[int]:
    return [updates // sources] * sources
