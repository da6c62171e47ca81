"""Expressions over fields: each column of a node is named by the id of its field.

Invariant: no function changes the node that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from spillway.errors import ViewError
from spillway.plan.algebra.relation import Field

_SAFE = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not,
    exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In,
    exp.Between, exp.Case, exp.If, exp.Dot,
)  # fmt: skip
_WHOLE = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Anonymous, exp.Cast)
_MOST_PARTS = 5_000
_INT_LIMIT = 2**31


def column(field: Field) -> exp.Expr:
    """The value of a field."""
    return exp.column(str(field.id), quoted=True)


def ids(node: exp.Expr) -> frozenset[int]:
    """The fields that a node reads."""
    return frozenset(int(part.name) for part in node.find_all(exp.Column))


def rewritten(node: exp.Expr, value: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """`node` with another expression in place of each column."""
    holder = exp.Paren(this=node.copy())  # a holder, so that the topmost node can be replaced too
    parts = 0
    for part in list(holder.find_all(exp.Column)):
        other = value(part)
        if not isinstance(other, exp.Column):
            parts += sum(1 for _ in other.walk())
            if parts > _MOST_PARTS:
                raise ViewError(
                    f"an expression has more than {_MOST_PARTS} parts when the derived tables of the view "
                    "are put together; let them repeat fewer expressions"
                )
        part.replace(other.copy() if part.parent is holder else _operand(other))
    result: exp.Expr = holder.this.pop()
    return result


def substituted(node: exp.Expr, values: Mapping[int, exp.Expr]) -> exp.Expr:
    """`node` with the value of each field that has one in `values`."""
    return rewritten(node, lambda part: values.get(int(part.name), part))


def _operand(value: exp.Expr) -> exp.Expr:
    """A copy of `value` that can stand inside another expression.

    A whole number is cast to its type: Spark gives arithmetic on decimals fewer digits beside a literal than
    beside a column.
    """
    number = value.this if isinstance(value, exp.Neg) else value
    if isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit():
        kind = "int" if int(number.name) < _INT_LIMIT else "bigint"
        return exp.cast(value.copy(), kind, dialect="spark")
    return value.copy() if isinstance(value, _WHOLE) else exp.Paren(this=value.copy())


def may_fail(node: exp.Expr) -> bool:
    """Whether the value may be an error for some row: then a condition before it may be its guard."""
    return not all(isinstance(part, _SAFE) for part in node.walk())
