"""The conjuncts of WHERE, ON and USING, sorted by what each can be: a filter, an equi-join, or a residual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from spillway.plan.sql.resolution import dependencies, resolve, without_parentheses
from spillway.plan.sql.scope import Scope


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """An expression over one input: a side of an equality, or a filter."""

    input: int
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, each over one input, the two inputs different: an edge of the equality graph."""

    left: KeyTerm
    right: KeyTerm
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class Predicates:
    """All conjuncts, each kind in the order in which it was written."""

    filters: tuple[KeyTerm, ...]
    equalities: tuple[Equality, ...]
    residual: tuple[exp.Expr, ...]


def read_predicates(select: exp.Select, scope: Scope) -> Predicates:
    """Sort every conjunct of the view; one that reads no column at all filters the first input."""
    conditions = list(scope.conditions)
    if (where := select.args.get("where")) is not None:
        conditions.append(where.this)
    return sort_conjuncts(
        (node for condition in conditions for node in conjuncts(resolve(condition, scope))), scope
    )


def sort_conjuncts(nodes: Iterable[exp.Expr], scope: Scope) -> Predicates:
    """Resolved conjuncts by their kinds."""
    filters: list[KeyTerm] = []
    equalities: list[Equality] = []
    residual: list[exp.Expr] = []
    for node in nodes:
        inputs = dependencies(node, scope)
        if len(inputs) <= 1:
            filters.append(KeyTerm(inputs[0] if inputs else 0, node))
        elif (equality := _equality(node, scope)) is not None:
            equalities.append(equality)
        else:
            residual.append(node)
    return Predicates(tuple(filters), tuple(equalities), tuple(residual))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a conjunction, left to right."""
    node = without_parentheses(node)
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return [node]


def conjunction(nodes: Sequence[exp.Expr]) -> exp.Expr:
    """All of `nodes`, in their order."""
    wrapped = [exp.Paren(this=node.copy()) if isinstance(node, exp.Or) else node.copy() for node in nodes]
    return reduce(lambda left, right: exp.And(this=left, expression=right), wrapped)


def _equality(node: exp.Expr, scope: Scope) -> Equality | None:
    if not isinstance(node, exp.EQ):
        return None
    sides = [without_parentheses(side) for side in (node.this, node.expression)]
    inputs = [dependencies(side, scope) for side in sides]
    if any(len(used) != 1 for used in inputs) or inputs[0] == inputs[1]:
        return None
    left, right = (KeyTerm(used[0], side) for used, side in zip(inputs, sides, strict=True))
    return Equality(left, right, node)
