"""What the plan of a grouped windowed aggregate will do, for readers and programs."""

from __future__ import annotations

from collections.abc import Mapping

from spillway.plan.explain.report import PlanReport, input_report, opening_stages, plan_report
from spillway.plan.expression import ColumnRef
from spillway.plan.operators import AggregatePlan


def explain_aggregate(
    plan: AggregatePlan,
    processors: int,
    groups: int,
    key_types: tuple[str, ...] | None,
    column_types: Mapping[ColumnRef, str],
) -> PlanReport:
    order = ", ".join(plan.column_label(ColumnRef(0, column)) for column in (plan.time, *plan.order))
    window = f"ordered by {order}; rows up to {plan.lateness_us / 1_000_000:g} s late"
    return plan_report(
        plan,
        plan.key_types if key_types is None else key_types,
        {"groups": groups, "processors": processors},
        operator="grouped windowed aggregate",
        hash_exact=False,
        inputs=[input_report(plan.input, window, column_types, 0, plan.kept)],
        stages=[
            *opening_stages(plan.input.source, groups, processors),
            ("order", "rows below the watermark, by key and order; the others wait"),
            ("compute", "statistics over state and these rows; outputs, runs"),
            ("commit", "manifest, then sink"),
        ],
    )
