"""What the plan of a tree will do: its joins with keys, state and lineage, and the stages of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spillway.plan.explain.choice import choice_lines, size_lines, with_choice
from spillway.plan.explain.report import (
    JoinInputReport,
    JoinReport,
    KeyReport,
    PlanReport,
    SpreadReport,
    closing_lines,
    input_lines,
    joined_inputs,
    key_lines,
    opening_lines,
    plan_report,
    source_names,
)
from spillway.plan.expression import ColumnRef, describe
from spillway.plan.operators import (
    JOIN_KINDS,
    Child,
    Grid,
    GroupNumber,
    KeyHash,
    KeyValue,
    Leaf,
    LeafColumn,
    OperatorLayout,
    Symbol,
    TreePlan,
    hash_is_exact,
    layout,
    partition_classes,
    shape_text,
)
from spillway.plan.sql import display


def explain_tree(
    plan: TreePlan,
    processors: int,
    groups: int,
    key_types: Sequence[str] | None,
    column_types: Mapping[ColumnRef, str],
) -> PlanReport:
    """The plan as JSON-ready values; `key_types` are those of the classes that Spark's analysis found."""
    types: tuple[str | None, ...] = plan.key_types if key_types is None else tuple(key_types)
    exact = [
        False if plan.partition else _exact([types[number] for number in join.classes]) for join in plan.joins
    ]
    layouts = layout(plan, [known is True for known in exact])
    joins = [_join(plan, number, layouts[number], types, exact[number]) for number in range(len(plan.joins))]
    report = plan_report(
        plan,
        types,
        {"groups": groups, "processors": processors},
        operator=f"tree of {len(plan.joins)} joins {shape_text(plan.shape())}",
        hash_exact=None if None in exact else all(exact),
        inputs=joined_inputs(plan, column_types),
        stages=_stages(plan, processors, groups),
    )
    report["joins"] = joins
    report["spreads"] = [_spread(plan, kind, groups) for kind in JOIN_KINDS]
    return with_choice(report, plan.choice)


def tree_text(report: PlanReport) -> str:
    """The same for a reader."""
    groups, processors = report["partitioning"]["groups"], report["partitioning"]["processors"]
    lines = opening_lines(report)
    lines.append(f"  partition  {groups} groups of each join on {processors} processors")
    lines += [
        _spread_line(spread) for spread in sorted(report["spreads"], key=lambda spread: not spread["chosen"])
    ]
    lines += choice_lines(report)
    for number, join in enumerate(report["joins"]):
        lines += ["", f"{join['name'].capitalize()}, level {join['level']}"]
        lines += key_lines(join["key"])
        lines.append(f"  residual   {join['residual'] or 'none'}")
        lines += size_lines(report, number)
        for input_ in join["inputs"]:
            lines.append(f"  input      {input_['name']}: keeps {', '.join(input_['state']) or 'key only'}")
        if join["lineage"]:
            lines.append(f"  lineage    groups of {', '.join(join['lineage'])} are counted")
        lines.append(f"  results    to {join['parent'] or 'the view'}")
    for leaf in report["inputs"]:
        lines += input_lines(leaf)
    return "\n".join([*lines, *closing_lines(report)]) + "\n"


def _join(
    plan: TreePlan, number: int, made: OperatorLayout, types: Sequence[str | None], exact: bool | None
) -> JoinReport:
    join = plan.joins[number]
    parent = plan.parent(number)
    key: list[KeyReport] = []
    for key_class in join.classes:
        leaves = [plan.representative(child, key_class) for child in join.children]
        keys = [plan.inputs[leaf].keys[plan.key_classes[leaf].index(key_class)] for leaf in leaves]
        terms = [f"{plan.inputs[leaf].name}.{display(text)}" for leaf, text in zip(leaves, keys, strict=True)]
        key.append({"terms": terms, "type": types[key_class]})
    inputs: list[JoinInputReport] = [
        {
            "name": _name(plan, input_.child),
            "state": [
                _label(plan, symbol) for symbol in input_.columns if not isinstance(symbol, GroupNumber)
            ],
        }
        for input_ in made.inputs
    ]
    return {
        "name": f"join {number + 1}",
        "level": plan.level(number),
        "key": key,
        "hash_exact": exact,
        "residual": None if join.residual is None else describe(join.residual, plan.column_label),
        "inputs": inputs,
        "lineage": [f"join {below + 1}" for below, _ in made.lineage],
        "parent": None if parent is None else f"join {parent + 1}",
    }


def _spread_line(spread: SpreadReport) -> str:
    by = " x ".join(spread["by"]) or "key of each join"
    copies = ", ".join(f"{name} in {count} copies" for name, count in spread["copies"].items())
    return f"  {'by' if spread['chosen'] else 'or':9}  {spread['join']}: {by}; {copies or 'no copies'}"


def _spread(plan: TreePlan, kind: str, groups: int) -> SpreadReport:
    classes = partition_classes(kind, plan.key_classes)
    grid = Grid.of(classes, groups)
    counts = {
        input_.name: grid.copies(of_leaf)
        for input_, of_leaf in zip(plan.inputs, plan.key_classes, strict=True)
    }
    return {
        "join": kind,
        "by": [
            f"{plan.key_labels[number][0]} in {share}"
            for number, share in zip(grid.classes, grid.shares, strict=True)
        ],
        "copies": {name: count for name, count in counts.items() if classes and count > 1},
        "chosen": classes == plan.partition,
    }


def _name(plan: TreePlan, child: Child) -> str:
    return plan.inputs[child.number].name if isinstance(child, Leaf) else f"join {child.number + 1}"


def _label(plan: TreePlan, symbol: Symbol) -> str:
    if isinstance(symbol, LeafColumn):
        return f"{plan.inputs[symbol.leaf].name}.{plan.inputs[symbol.leaf].columns[symbol.column].label}"
    if isinstance(symbol, KeyHash | KeyValue):
        input_ = plan.inputs[symbol.leaf]
        text = display(input_.keys[plan.key_classes[symbol.leaf].index(symbol.key_class)])
        kind = "hash" if isinstance(symbol, KeyHash) else "key"  # a selected key column is kept besides
        return f"{kind}({input_.name}.{text})"
    return "deadline"


def _exact(types: Sequence[str | None]) -> bool | None:
    known = [kind for kind in types if kind is not None]
    if len(types) > 1:
        return False
    return hash_is_exact(known) if known else None


def _stages(plan: TreePlan, processors: int, groups: int) -> Iterator[tuple[str, str]]:
    yield "scan", f"{source_names(plan)}: filter, project, key hashes (Spark)"
    yield "route", f"join of the input, then 1 of {groups} groups; processor of the group"
    yield "shuffle", f"to {processors} processors"
    levels = max(plan.level(number) for number in range(len(plan.joins)))
    for level in range(levels + 1):
        joins = [f"join {n + 1}" for n in range(len(plan.joins)) if plan.level(n) == level]
        yield "probe", f"{', '.join(joins)}: new rows against state, runs"
        if level < levels:
            how = "by file to the parent's groups" if processors > 1 else "in the same task"
            yield "exchange", f"results {how}, with lineage"
    yield "commit", "manifest, then sink"
