"""An m-way join, or a statistics view, explained."""

from __future__ import annotations

from collections.abc import Mapping

from spillway.plan.explain.report import InputReport, PlanReport, StageReport, closing_lines, opening_lines
from spillway.plan.expression import ColumnRef, describe
from spillway.plan.operators import JoinPlan, hash_is_exact
from spillway.plan.sql import display, window_text


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
    return {
        "view": plan.view,
        "fingerprint": plan.fingerprint,
        "operator": f"{len(plan.inputs)}-way join",
        "key": [
            {"terms": list(terms), "type": kind} for terms, kind in zip(plan.key_labels, types, strict=True)
        ],
        "hash_exact": exact,
        "partitioning": {"groups": groups, "processors": processors},
        "inputs": [_input_report(plan, index, column_types) for index in range(len(plan.inputs))],
        "residual": residual,
        "outputs": [
            {"name": output.name, "value": describe(output.value, plan.column_label)}
            for output in plan.outputs
        ],
        "stages": _stages(plan, processors, groups, residual is not None, exact),
    }


def join_text(report: PlanReport) -> str:
    """The same for a reader."""
    groups, processors = report["partitioning"]["groups"], report["partitioning"]["processors"]
    lines = opening_lines(report)
    lines += [f"  key        {' = '.join(part['terms'])}  {part['type'] or '?'}" for part in report["key"]]
    lines.append(f"  hash       {_hash_text(report['hash_exact'])}")
    lines.append(f"  partition  {groups} groups on {processors} processors, by key hash")
    lines.append(f"  residual   {report['residual'] or 'none'}")
    for input_ in report["inputs"]:
        lines += ["", f"Input {input_['name']}: source {input_['source']}"]
        lines.append(f"  filter     {input_['filter'] or 'none'}")
        if input_["window"] is not None:
            lines.append(f"  window     {input_['window']}")
        lines.append(f"  key        {', '.join(input_['key'])}")
        if not input_["state"]:
            lines.append("  state      key only")
        lines += [f"  state      {c['name']}  {c['label']}  {c['type'] or '?'}" for c in input_["state"]]
    return "\n".join([*lines, *closing_lines(report)]) + "\n"


def _input_report(plan: JoinPlan, index: int, types: Mapping[ColumnRef, str]) -> InputReport:
    input_ = plan.inputs[index]
    return {
        "name": input_.name,
        "source": input_.source,
        "filter": None if input_.filter is None else display(input_.filter),
        "window": window_text(plan.windows[index]) if plan.windows else None,
        "key": [display(key) for key in input_.keys],
        "state": [
            {
                "name": column.name,
                "label": column.label,
                "type": types.get(ColumnRef(index, position), column.type),
            }
            for position, column in enumerate(input_.columns)
        ],
    }


def _hash_text(exact: bool | None) -> str:
    if exact is None:
        return "xxhash64; whether keys are verified depends on their type"
    return (
        "xxhash64, exact: equal hashes are equal keys"
        if exact
        else "xxhash64; keys verified after a hash match"
    )


def _stages(
    plan: JoinPlan, processors: int, groups: int, residual: bool, exact: bool | None
) -> list[StageReport]:
    sources = ", ".join(
        input_.source if input_.source == input_.name else f"{input_.source} {input_.name}"
        for input_ in plan.inputs
    )
    probe = ["each input's new rows against the state of the others"]
    probe += [] if exact else ["verify keys"]
    probe += ["residual"] if residual else []
    probe += ["outputs, runs"]
    return [
        {"name": "scan", "work": f"{sources}: filter, project, key hash (Spark)"},
        {
            "name": "route",
            "work": f"group = bucket of the hash, 1 of {groups}; processor = placement of the group",
        },
        {"name": "shuffle", "work": f"to {processors} processors"},
        {"name": "probe", "work": "; ".join(probe)},
        {"name": "commit", "work": "manifest, then sink"},
    ]
