"""The select list as named expressions: stars expanded, names given, duplicates refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.sql.render import label, quote
from spillway.plan.sql.resolution import resolve
from spillway.plan.sql.scope import Scope, suggestion


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One column of the result: its name and its resolved expression."""

    name: str
    node: exp.Expr


class Named(Protocol):
    """A column of the result, as far as its name goes."""

    @property
    def name(self) -> str: ...

    @property
    def node(self) -> exp.Expr: ...


def read_select_list(select: exp.Select, scope: Scope) -> tuple[SelectItem, ...]:
    """The result's columns in order; an expression without an alias is named by its own text, as in Spark."""
    items = [item for node in select.expressions for item in read_items(node, scope)]
    distinct_names(items, scope)
    return tuple(items)


def distinct_names(items: Sequence[Named], scope: Scope) -> None:
    """Refuse two result columns with the same name."""
    seen: dict[str, Named] = {}
    for item in items:
        if (first := seen.get(item.name.lower())) is not None:
            raise ViewError(
                f"two result columns are called {item.name}: {label(first.node)} and {label(item.node)}; "
                f"alias one of them: {label(item.node)} AS {_free_name(item, scope)}"
            )
        seen[item.name.lower()] = item


def read_items(node: exp.Expr, scope: Scope) -> list[SelectItem]:
    """The columns that one part of the select list stands for."""
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        if any(star.args.values()):
            raise ViewError(f"{quote(node)} is not supported yet: name the columns you want")
        return _expand(node, scope)
    if isinstance(node, exp.Alias):
        return [SelectItem(node.alias, resolve(node.this, scope))]
    if isinstance(node, exp.Aliases):
        raise ViewError(f"several aliases for one expression are not supported: {quote(node)}")
    resolved = resolve(node, scope)
    if isinstance(node, exp.Column):
        return [SelectItem(node.name, resolved)]
    if isinstance(node, exp.Dot):
        return [SelectItem(node.expression.name, resolved)]
    return [SelectItem(label(resolved), resolved)]


def _expand(node: exp.Expr, scope: Scope) -> list[SelectItem]:
    if not isinstance(node, exp.Column):
        columns = [(visible.input, visible.column) for visible in scope.visible]
    else:
        index = scope.position(node.table)
        if index is None or len(node.parts) > 2:
            known = [input_.alias for input_ in scope.inputs]
            raise ViewError(f"unknown input in {quote(node)}; {suggestion(node.table, known)}")
        columns = [(index, column) for column in scope.inputs[index].columns]
    return [
        SelectItem(column.name, exp.column(column.name, table=scope.inputs[index].alias, quoted=True))
        for index, column in columns
    ]


def _free_name(item: Named, scope: Scope) -> str:
    column = item.node.find(exp.Column)
    prefix = column.table if column is not None else scope.inputs[0].alias
    return f"{prefix}_{item.name}" if item.name.isidentifier() else f"{prefix}_value"
