"""The plan of a view as one m-way equi-join: work per input in Spark, state columns, work after the join.

Everything here is a plain value, so a plan can be pickled, compared and hashed. The fingerprint covers what
decides the state's layout and the result, not how the view was spelled: labels and the text of the view are
not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from spillway.model import Window
from spillway.plan.expression import ColumnRef, Expression
from spillway.plan.operators.tree_choice import Shape, TreeChoice

FORMAT = 1


@dataclass(frozen=True, slots=True)
class StateColumn:
    """A value that state keeps for each row of an input: Spark SQL over the source's columns."""

    name: str
    expression: str
    label: str
    type: str | None = None
    """The Spark type if the catalog knows it (a bare column); otherwise Spark's analysis finds it."""


@dataclass(frozen=True, slots=True)
class InputPlan:
    """One input: rows that pass `filter` and have no null among their `keys` enter the join."""

    name: str
    source: str
    filter: str | None
    keys: tuple[str, ...]
    columns: tuple[StateColumn, ...]
    times: tuple[str, ...] = ()
    """What orders rows in time: the event time, then further columns. Rows without an
    event time count as `null_time_rows` and give no results."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result: a state column as it is, or an expression over several inputs."""

    name: str
    value: ColumnRef | Expression


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """An m-way join on one shared key. `residual` is tested on joined rows before `outputs` are evaluated."""

    kind: ClassVar[str] = "join"
    chosen_tree: ClassVar[Shape | None] = None
    inputs: tuple[InputPlan, ...]
    outputs: tuple[OutputColumn, ...]
    residual: Expression | None
    fingerprint: str
    key_labels: tuple[tuple[str, ...], ...] = ()
    """For each key part, its label in each input (`a.k`), for messages."""
    key_types: tuple[str | None, ...] = ()
    """For each key part, the type in which it is compared, if the catalog knows it."""
    windows: tuple[Window, ...] = ()
    """One per input; none at all in a view without windows."""
    view: str = field(default="", compare=False)
    """The view's SQL on one line, for readers."""
    choice: TreeChoice | None = field(default=None, compare=False)
    """Why it is one join, if a tree was possible."""

    def column_label(self, ref: ColumnRef) -> str:
        return column_label(self.inputs, ref)


def column_label(inputs: Sequence[InputPlan], ref: ColumnRef) -> str:
    """A state column as a reader knows it: `p.price`, or `[p: upper(symbol)]` for an expression."""
    input_ = inputs[ref.input]
    text = input_.columns[ref.column].label
    return f"{input_.name}.{text}" if text.replace(".", "").isidentifier() else f"[{input_.name}: {text}]"


def fingerprint(
    inputs: tuple[InputPlan, ...],
    outputs: tuple[OutputColumn, ...],
    residual: Expression | None,
    windows: tuple[Window, ...] = (),
) -> str:
    """SHA-256 of the canonical form of a plan."""
    canonical: dict[str, object] = {
        "format": FORMAT,
        "inputs": [canonical_input(input_) for input_ in inputs],
        "outputs": canonical_outputs(outputs),
        "residual": None if residual is None else asdict(residual),
    }
    if windows:  # how late rows may be is a setting of the run, not of the view
        canonical["windows"] = [[window.column, window.range_us] for window in windows]
    return digest(canonical)


def canonical_input(input_: InputPlan, *further: object) -> list[object]:
    """An input as fingerprints have it; `further` stands between its keys and its columns."""
    expressions = [column.expression for column in input_.columns]
    return [input_.name.lower(), input_.source, input_.filter, input_.keys, *further, expressions]


def canonical_outputs(outputs: Sequence[OutputColumn]) -> list[list[object]]:
    return [[output.name, asdict(output.value)] for output in outputs]


def digest(canonical: Mapping[str, object]) -> str:
    """The fingerprint of a plan, given by its canonical form; its text is on disk and must not change."""
    return hashlib.sha256(json.dumps(canonical, separators=(",", ":"), default=str).encode()).hexdigest()
