"""Aggregates on top of a maintained join: which joined rows are stored, and what result columns are made of.

The join underneath is maintained as any other; its stored rows have the columns of GROUP BY and the arguments
of the aggregates. Known limits: no HAVING, no DISTINCT, no expression around an aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.sql import Scope, SelectItem, distinct_names, label, quote, resolve, unsupported

Function = Literal["group", "count", "sum", "avg", "min", "max"]
_FUNCTIONS = {
    "count": "count", "sum": "sum", "avg": "avg", "mean": "avg", "min": "min", "max": "max",
}  # fmt: skip
_ORDERLESS = ("binary",)


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """One result column; `place` is the stored column it is over, None: rows are counted."""

    name: str
    function: Function
    place: int | None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The first `groups` stored columns are those of GROUP BY; without any, all rows are one group."""

    groups: int
    columns: tuple[AggregateColumn, ...]


def is_aggregated(select: exp.Select) -> bool:
    """Whether the view groups rows, or aggregates all of them."""
    return bool(select.args.get("group")) or any(_call(_bare(item)) for item in select.expressions)


def read_aggregation(select: exp.Select, scope: Scope) -> tuple[Aggregation, tuple[SelectItem, ...]]:
    """The aggregation of a view, and the columns of the join that are stored for it."""
    stored = {label(node): node for node in _group_nodes(select, scope)}
    groups = len(stored)
    items, columns = list[SelectItem](), list[AggregateColumn]()
    for item in select.expressions:
        node = _bare(item)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise unsupported("* beside GROUP BY", item, "name the columns you want")
        function, argument = _call(node) or ("group", node)
        resolved = None if argument is None else resolve(argument, scope)
        named = isinstance(item, exp.Alias | exp.Column)
        items.append(SelectItem(item.alias_or_name if named else label(node), resolved or node))
        if resolved is None:
            columns.append(AggregateColumn(items[-1].name, function, None))
            continue
        text = label(resolved)
        if function == "group" and text not in [*stored][:groups]:
            raise ViewError(f"{text} is neither aggregated nor in GROUP BY; add it there")
        _check(function, resolved, scope)
        stored.setdefault(text, resolved)
        columns.append(AggregateColumn(items[-1].name, function, [*stored].index(text)))
    distinct_names(items, scope)
    if not stored:  # count(*) of all rows: they need some column to be stored by
        stored["1"] = exp.Literal.number(1)
    kept = tuple(SelectItem(f"{place}", node) for place, node in enumerate(stored.values()))
    return Aggregation(groups, tuple(columns)), kept


def _group_nodes(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    group = select.args.get("group")
    if group is None:
        return []
    for part, value in group.args.items():
        if value and part != "expressions":
            raise unsupported(f"GROUP BY {part.upper()}", group, "group by columns")
    nodes = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(str(key.this)) if str(key.this).isdigit() else 0
            if not 0 < place <= len(select.expressions):
                raise ViewError(f"GROUP BY {key.this}: there are {len(select.expressions)} result columns")
            key = _bare(select.expressions[place - 1])
        nodes.append(resolve(key, scope))
    return nodes


def _call(node: exp.Expr) -> tuple[Function, exp.Expr | None] | None:
    """The function and its argument, None for all rows; nothing if it is not an aggregate."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if name not in _FUNCTIONS:
        return None
    arguments = node.expressions
    if any(isinstance(argument, exp.Distinct) for argument in arguments):
        raise unsupported("DISTINCT", node, "aggregate all rows")
    if len(arguments) != 1:
        raise ViewError(f"{quote(node)} has {len(arguments)} arguments; an aggregate has one")
    if name == "count" and isinstance(arguments[0], exp.Star | exp.Literal):
        return "count", None
    return cast("Function", _FUNCTIONS[name]), arguments[0]


def _check(function: Function, node: exp.Expr, scope: Scope) -> None:
    """Refuse a column that the function is not defined for; expressions are numbers or conditions."""
    place = scope.position(node.table) if isinstance(node, exp.Column) else None
    column = scope.inputs[place].find(node.name) if place is not None else None
    if column is None or function in ("group", "count"):
        return
    number = column.type in ("tinyint", "smallint", "int", "bigint", "float", "double")
    if function in ("sum", "avg") and not (number or column.type.startswith("decimal")):
        raise ViewError(f"{function} of {label(node)}, which is {column.type}, is not supported")
    if function in ("min", "max") and column.type in _ORDERLESS:
        raise ViewError(f"{function} of {label(node)}, which is {column.type}, is not supported")


def _bare(node: exp.Expr) -> exp.Expr:
    return cast("exp.Expr", node.this) if isinstance(node, exp.Alias) else node
