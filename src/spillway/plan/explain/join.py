"""An m-way join, or a statistics view, explained."""

from __future__ import annotations

from collections.abc import Mapping

from spillway.plan.explain.choice import choice_lines, with_choice
from spillway.plan.explain.report import (
    PlanReport,
    closing_lines,
    input_lines,
    joined_inputs,
    key_lines,
    opening_lines,
    opening_stages,
    plan_report,
    source_names,
)
from spillway.plan.expression import ColumnRef, describe
from spillway.plan.operators import JoinPlan, hash_is_exact


def explain_join(
    plan: JoinPlan,
    processors: int,
    groups: int,
    key_types: tuple[str, ...] | None,
    column_types: Mapping[ColumnRef, str],
) -> PlanReport:
    types: tuple[str | None, ...] = plan.key_types if key_types is None else key_types
    known = [kind for kind in types if kind is not None]
    exact = hash_is_exact(known) if len(known) == len(types) else (False if len(types) > 1 else None)
    residual = None if plan.residual is None else describe(plan.residual, plan.column_label)
    probe = ["each input's new rows against the state of the others"]
    probe += [] if exact else ["verify keys"]
    probe += ["residual"] if residual else []
    probe += ["outputs, runs"]
    report = plan_report(
        plan,
        types,
        {"groups": groups, "processors": processors},
        operator=f"{len(plan.inputs)}-way join",
        hash_exact=exact,
        inputs=joined_inputs(plan, column_types),
        residual=residual,
        stages=[
            *opening_stages(source_names(plan), groups, processors),
            ("probe", "; ".join(probe)),
            ("commit", "manifest, then sink"),
        ],
    )
    return with_choice(report, plan.choice)


def join_text(report: PlanReport) -> str:
    """The same for a reader."""
    groups, processors = report["partitioning"]["groups"], report["partitioning"]["processors"]
    lines = opening_lines(report)
    lines += key_lines(report["key"])
    lines.append(f"  hash       {_hash_text(report['hash_exact'])}")
    lines.append(f"  partition  {groups} groups on {processors} processors, by key hash")
    lines.append(f"  residual   {report['residual'] or 'none'}")
    lines += choice_lines(report)
    for input_ in report["inputs"]:
        lines += input_lines(input_)
        if not input_["state"]:
            lines.append("  state      key only")
        lines += [f"  state      {c['name']}  {c['label']}  {c['type'] or '?'}" for c in input_["state"]]
    return "\n".join([*lines, *closing_lines(report)]) + "\n"


def _hash_text(exact: bool | None) -> str:
    if exact is None:
        return "xxhash64; whether keys are verified depends on their type"
    return (
        "xxhash64, exact: equal hashes are equal keys"
        if exact
        else "xxhash64; keys verified after a hash match"
    )
