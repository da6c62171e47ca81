"""Which row groups a filter excludes, by the bounds of their columns.

Conservative: a group is excluded only if no row of it can make the filter true. A comparison with null is
never true, so a column of nulls only excludes too. Only whole numbers and text are compared: Spark sorts NaN
above all numbers, but statistics leave NaN out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from spillway.plan.expression import Call, ColumnRef, Expression, Literal


@dataclass(frozen=True, slots=True)
class Bounds:
    """The values of a column in a row group; None where the statistics do not tell."""

    low: int | str | None = None
    high: int | str | None = None
    nulls: int | None = None


BoundsOf = Callable[[ColumnRef], Bounds | None]
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<=>": "<=>"}


def may_hold(condition: Expression, bounds: BoundsOf, rows: int) -> bool:
    """Whether the condition may be true for one of `rows` rows within these bounds."""
    if isinstance(condition, Literal):
        return condition.value is True
    if not isinstance(condition, Call):
        return True
    function, arguments = condition.function, condition.arguments
    if function == "and":
        return all(may_hold(argument, bounds, rows) for argument in arguments)
    if function == "or":
        return any(may_hold(argument, bounds, rows) for argument in arguments)
    if function == "is null":
        nulls = _nulls(arguments[0], bounds)
        return nulls is None or nulls > 0
    if function == "not":
        return _may_fail(arguments[0], bounds, rows)
    if function == "in":
        return any(_may_compare("=", arguments[0], value, bounds, rows) for value in arguments[1:])
    if function in _MIRRORED:
        return _may_compare(function, arguments[0], arguments[1], bounds, rows)
    return True


def _may_fail(condition: Expression, bounds: BoundsOf, rows: int) -> bool:
    """Whether the condition may be false."""
    if isinstance(condition, Call) and condition.function == "is null":
        nulls = _nulls(condition.arguments[0], bounds)
        return nulls is None or nulls < rows
    return True


def _nulls(value: Expression, bounds: BoundsOf) -> int | None:
    known = bounds(value) if isinstance(value, ColumnRef) else None
    return None if known is None else known.nulls


def _may_compare(operator: str, left: Expression, right: Expression, bounds: BoundsOf, rows: int) -> bool:
    if isinstance(left, Literal):
        operator, left, right = _MIRRORED[operator], right, left
    if not isinstance(left, ColumnRef) or not isinstance(right, Literal):
        return True
    known = bounds(left)
    if known is None:
        return True
    if right.value is None:
        return operator == "<=>" and (known.nulls is None or known.nulls > 0)
    if known.nulls == rows:
        return False
    low, high, value = known.low, known.high, right.value
    below = _is_less(value, low)
    above = _is_less(high, value)
    if operator in ("=", "<=>"):
        return not below and not above
    if operator in ("<", "<="):
        return not (below or (operator == "<" and _is_equal(value, low)))
    return not (above or (operator == ">" and _is_equal(value, high)))


def _comparable(left: object, right: object) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, str):
        return isinstance(right, str)
    return isinstance(left, int | Decimal) and isinstance(right, int | Decimal)


def _is_less(left: object, right: object) -> bool:
    """Whether both are known and the first is less; texts of code points sort like their UTF-8 bytes."""
    return _comparable(left, right) and bool(left < right)  # type: ignore[operator]


def _is_equal(left: object, right: object) -> bool:
    return _comparable(left, right) and left == right
