"""Expressions over fields: each column of a node is named by the id of its field.

Invariant: no function changes the node that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from spillway.plan.algebra.relation import Field

_SAFE = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not,
    exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In,
    exp.Between, exp.Case, exp.If, exp.Dot,
)  # fmt: skip
_WHOLE = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Anonymous, exp.Cast)


def column(field: Field) -> exp.Expr:
    """The value of a field."""
    return exp.column(str(field.id), quoted=True)


def ids(node: exp.Expr) -> frozenset[int]:
    """The fields that a node reads."""
    return frozenset(int(part.name) for part in node.find_all(exp.Column))


def rewritten(node: exp.Expr, value: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """`node` with another expression in place of each column; parentheses where they are needed."""
    holder = exp.Paren(this=node.copy())  # a holder, so that the topmost node can be replaced too
    for part in list(holder.find_all(exp.Column)):
        other = value(part)
        alone = isinstance(other, _WHOLE) or part.parent is holder
        part.replace(other.copy() if alone else exp.Paren(this=other.copy()))
    result: exp.Expr = holder.this.pop()
    return result


def substituted(node: exp.Expr, values: Mapping[int, exp.Expr]) -> exp.Expr:
    """`node` with the value of each field that has one in `values`."""
    return rewritten(node, lambda part: values.get(int(part.name), part))


def may_fail(node: exp.Expr) -> bool:
    """Whether the value may be an error for some row: then a condition before it may be its guard."""
    return not all(isinstance(part, _SAFE) for part in node.walk())
