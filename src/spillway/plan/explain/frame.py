"""What the plan of a grouped windowed aggregate will do, for readers and programs."""

from __future__ import annotations

from collections.abc import Mapping

from spillway.plan.explain.report import InputReport, PlanReport, StageReport
from spillway.plan.expression import ColumnRef, describe
from spillway.plan.operators import AggregatePlan
from spillway.plan.sql import display


def explain_aggregate(
    plan: AggregatePlan,
    processors: int,
    groups: int,
    key_types: tuple[str, ...] | None,
    _column_types: Mapping[ColumnRef, str],
) -> PlanReport:
    types = plan.key_types if key_types is None else key_types
    return {
        "view": plan.view,
        "fingerprint": plan.fingerprint,
        "operator": "grouped windowed aggregate",
        "key": [
            {"terms": list(terms), "type": kind} for terms, kind in zip(plan.key_labels, types, strict=True)
        ],
        "hash_exact": False,
        "partitioning": {"groups": groups, "processors": processors},
        "inputs": [_input_report(plan)],
        "residual": None,
        "outputs": [
            {"name": output.name, "value": describe(output.value, plan.column_label)}
            for output in plan.outputs
        ],
        "stages": _stages(plan, processors, groups),
    }


def _input_report(plan: AggregatePlan) -> InputReport:
    input_ = plan.input
    order = ", ".join(plan.column_label(ColumnRef(0, column)) for column in (plan.time, *plan.order))
    return {
        "name": input_.name,
        "source": input_.source,
        "filter": None if input_.filter is None else display(input_.filter),
        "window": f"ordered by {order}; rows up to {plan.lateness_us / 1_000_000:g} s late",
        "key": [display(key) for key in input_.keys],
        "state": [
            {"name": column.name, "label": column.label, "type": column.type}
            for column in input_.columns[: plan.kept]
        ],
    }


def _stages(plan: AggregatePlan, processors: int, groups: int) -> list[StageReport]:
    return [
        {"name": "scan", "work": f"{plan.input.source}: filter, project, key hash (Spark)"},
        {
            "name": "route",
            "work": f"group = bucket of the hash, 1 of {groups}; processor = placement of the group",
        },
        {"name": "shuffle", "work": f"to {processors} processors"},
        {"name": "order", "work": "rows below the watermark, by key and order; the others wait"},
        {"name": "compute", "work": "statistics over state and these rows; outputs, runs"},
        {"name": "commit", "work": "manifest, then sink"},
    ]
