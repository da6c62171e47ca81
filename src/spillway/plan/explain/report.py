"""A plan as JSON-ready values: what `explain --json` prints, and what the text is made from."""

from __future__ import annotations

from typing import NotRequired, TypedDict


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
    """One way to spread the rows of a tree over groups, and its cost: inputs that are kept in copies."""

    join: str
    by: list[str]
    """The keys of which groups are made, with their parts; none: each join has its own."""
    copies: dict[str, int]
    chosen: bool


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
