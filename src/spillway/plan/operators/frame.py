"""The plan of a view as one grouped windowed aggregate: for every row, statistics over the rows before it.

A plain value, like a join plan. State keeps the first `kept` columns of a row after its own result is out:
event time, order, arguments. The other columns wait with the row until it is final.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import ClassVar

from spillway.model import Statistic
from spillway.plan.expression import STATISTICS, ColumnRef
from spillway.plan.operators.join import (
    FORMAT,
    InputPlan,
    OutputColumn,
    canonical_input,
    canonical_outputs,
    digest,
)
from spillway.plan.operators.tree_choice import Shape


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """Rows that pass the input's filter, each with its statistics. Null is a key like any other."""

    kind: ClassVar[str] = "frame"
    chosen_tree: ClassVar[Shape | None] = None
    input: InputPlan
    outputs: tuple[OutputColumn, ...]
    statistics: tuple[Statistic, ...]
    time: int
    """The column with the event time in microseconds."""
    order: tuple[int, ...]
    """The columns that order rows of one event time."""
    kept: int
    lateness_us: int
    fingerprint: str
    key_labels: tuple[tuple[str, ...], ...] = ()
    key_types: tuple[str | None, ...] = ()
    view: str = field(default="", compare=False)

    @property
    def inputs(self) -> tuple[InputPlan, ...]:
        return (self.input,)

    def column_label(self, ref: ColumnRef) -> str:
        """A state column or a statistic as a reader knows it."""
        if ref.input != STATISTICS:
            return self.input.columns[ref.column].label
        statistic = self.statistics[ref.column]
        argument = "*" if statistic.argument is None else self.input.columns[statistic.argument].label
        return f"{statistic.function}({argument}) over {frame_text(statistic)}"


def frame_text(statistic: Statistic) -> str:
    """A frame for a reader."""
    preceding = statistic.frame.preceding
    if statistic.frame.kind == "rows":
        return f"{preceding + 1} rows" if preceding else "the row"
    return f"{preceding / 1_000_000:g} s"


def aggregate_fingerprint(
    input_: InputPlan,
    outputs: tuple[OutputColumn, ...],
    statistics: tuple[Statistic, ...],
    order: tuple[int, ...],
) -> str:
    """SHA-256 of the canonical form of a plan; how late rows may be is a setting of the run."""
    canonical = {
        "format": FORMAT,
        "operator": "aggregate",
        "input": canonical_input(input_),
        "outputs": canonical_outputs(outputs),
        "statistics": [asdict(statistic) for statistic in statistics],
        "order": order,
    }
    return digest(canonical)
