"""A plan as JSON-ready values: what `explain --json` prints, and what the text is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from spillway.plan.expression import ColumnRef, describe
from spillway.plan.operators import InputPlan, JoinPlan, TreePlan
from spillway.plan.rules import Plan
from spillway.plan.sql import display, window_text


class StateColumnReport(TypedDict):
    """One state column."""

    name: str
    label: str
    type: str | None


class InputReport(TypedDict):
    """One input."""

    name: str
    source: str
    filter: str | None
    window: str | None
    key: list[str]
    state: list[StateColumnReport]


class KeyReport(TypedDict):
    """One part of the key."""

    terms: list[str]
    type: str | None


class StageReport(TypedDict):
    """One stage of an epoch."""

    name: str
    work: str


class JoinInputReport(TypedDict):
    """One input of a join in a tree, and what the join keeps of its rows."""

    name: str
    state: list[str]


class JoinReport(TypedDict):
    """One join of a tree."""

    name: str
    level: int
    key: list[KeyReport]
    hash_exact: bool | None
    residual: str | None
    inputs: list[JoinInputReport]
    lineage: list[str]
    parent: str | None


class SpreadReport(TypedDict):
    """One way to spread the rows of a tree over groups, and its cost: copies of inputs."""

    join: str
    by: list[str]
    """The keys that partition all joins, with their parts; none: each join uses its own key."""
    copies: dict[str, int]
    chosen: bool


class SizeReport(TypedDict):
    """What one join is expected to do."""

    candidates: int
    results: int


class SizedTreeReport(TypedDict):
    """A tree by the names of its inputs, and its expected work."""

    tree: str
    candidates: int
    kept_rows: int
    joins: list[SizeReport]
    """Children come before their parents."""


class ChoiceReport(TypedDict):
    """Why a plan has its tree. Without statistics there are no sizes."""

    why: str
    chosen: SizedTreeReport | None
    runner_up: SizedTreeReport | None
    input_rows: dict[str, int]


class OutputReport(TypedDict):
    """One column of the result."""

    name: str
    value: str


class PlanReport(TypedDict):
    """All of a plan."""

    view: str
    fingerprint: str
    operator: str
    key: list[KeyReport]
    hash_exact: bool | None
    partitioning: dict[str, int]
    inputs: list[InputReport]
    residual: str | None
    outputs: list[OutputReport]
    stages: list[StageReport]
    joins: NotRequired[list[JoinReport]]
    """Of a tree."""
    spreads: NotRequired[list[SpreadReport]]
    """Of a tree: how its rows are spread, and how they could be."""
    choice: NotRequired[ChoiceReport]
    """Where several trees were possible."""


def plan_report(
    plan: Plan,
    types: Sequence[str | None],
    partitioning: dict[str, int],
    *,
    operator: str,
    hash_exact: bool | None,
    inputs: list[InputReport],
    stages: Iterable[tuple[str, str]],
    residual: str | None = None,
) -> PlanReport:
    """The report of a plan whose keys have these types; stages are given by name and work."""
    return {
        "view": plan.view,
        "fingerprint": plan.fingerprint,
        "operator": operator,
        "key": [
            {"terms": list(terms), "type": kind} for terms, kind in zip(plan.key_labels, types, strict=True)
        ],
        "hash_exact": hash_exact,
        "partitioning": partitioning,
        "inputs": inputs,
        "residual": residual,
        "outputs": [
            {"name": output.name, "value": describe(output.value, plan.column_label)}
            for output in plan.outputs
        ],
        "stages": [{"name": name, "work": work} for name, work in stages],
    }


def input_report(
    input_: InputPlan, window: str | None, types: Mapping[ColumnRef, str], index: int, kept: int | None = None
) -> InputReport:
    """Input `index` of a plan; `types` are known ones. The first `kept` columns are state."""
    return {
        "name": input_.name,
        "source": input_.source,
        "filter": None if input_.filter is None else display(input_.filter),
        "window": window,
        "key": [display(key) for key in input_.keys],
        "state": [
            {"name": c.name, "label": c.label, "type": types.get(ColumnRef(index, position), c.type)}
            for position, c in enumerate(input_.columns[:kept])
        ],
    }


def joined_inputs(plan: JoinPlan | TreePlan, types: Mapping[ColumnRef, str]) -> list[InputReport]:
    windows: list[str | None] = [window_text(window) for window in plan.windows]
    pairs = zip(plan.inputs, windows or [None] * len(plan.inputs), strict=True)
    return [input_report(input_, window, types, index) for index, (input_, window) in enumerate(pairs)]


def source_names(plan: JoinPlan | TreePlan) -> str:
    """The sources, each with the name that the view gives it where that is another."""
    return ", ".join(
        input_.source if input_.source == input_.name else f"{input_.source} {input_.name}"
        for input_ in plan.inputs
    )


def opening_stages(sources: str, groups: int, processors: int) -> list[tuple[str, str]]:
    """How rows come to the processors of a single operator."""
    return [
        ("scan", f"{sources}: filter, project, key hash (Spark)"),
        ("route", f"group = bucket of the hash, 1 of {groups}; processor = placement of the group"),
        ("shuffle", f"to {processors} processors"),
    ]


def input_lines(report: InputReport) -> list[str]:
    """What the text of every plan says of an input."""
    lines = ["", f"Input {report['name']}: source {report['source']}"]
    lines.append(f"  filter     {report['filter'] or 'none'}")
    if report["window"] is not None:
        lines.append(f"  window     {report['window']}")
    return [*lines, f"  key        {', '.join(report['key'])}"]


def key_lines(key: Sequence[KeyReport]) -> list[str]:
    return [f"  key        {' = '.join(part['terms'])}  {part['type'] or '?'}" for part in key]


def opening_lines(report: PlanReport) -> list[str]:
    """What the text of every plan begins with."""
    return [f"View {report['fingerprint'][:12]}", f"  {report['view']}", "", report["operator"].capitalize()]


def closing_lines(report: PlanReport) -> list[str]:
    """What it ends with: outputs and stages."""
    lines = ["", "Outputs", *(f"  {output['name']}  {output['value']}" for output in report["outputs"])]
    stages = enumerate(report["stages"], 1)
    return [
        *lines,
        "",
        "Stages of an epoch",
        *(f"  {n} {stage['name']:8} {stage['work']}" for n, stage in stages),
    ]
