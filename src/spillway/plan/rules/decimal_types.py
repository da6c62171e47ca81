"""Types of arithmetic on decimals, as Spark has them: digits grow with every operation, up to 38.

Beyond 38 digits Spark gives up digits after the point, but keeps six of them. Integers count as decimals of
all their digits; a literal as one of the digits that it has.
"""

from __future__ import annotations

import re

from spillway.plan.expression import Expression, Literal

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_WIDEST, _LEAST_SCALE = 38, 6

Operand = tuple[Expression, str]
"""A value and its Spark type."""


def decimal_type(operator: str, left: Operand, right: Operand) -> str | None:
    """The type of `left operator right`; None if neither is a decimal, or one is not exact."""
    sides = [_digits(*left), _digits(*right)]
    if not any(kind.startswith("decimal") for _, kind in (left, right)) or None in sides:
        return None
    (left_precision, left_scale), (right_precision, right_scale) = (
        side for side in sides if side is not None
    )
    scale = max(left_scale, right_scale)
    whole = [left_precision - left_scale, right_precision - right_scale]
    if operator in "+-":
        return _bounded(max(whole) + scale + 1, scale)
    if operator == "*":
        return _bounded(left_precision + right_precision + 1, left_scale + right_scale)
    if operator == "/":
        scale = max(_LEAST_SCALE, left_scale + right_precision + 1)
        return _bounded(whole[0] + right_scale + scale, scale)
    return _bounded(min(whole) + scale, scale)


def _digits(value: Expression, kind: str) -> tuple[int, int] | None:
    """Precision and scale of an operand; None if it is neither a decimal nor an integer."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return int(decimal[1]), int(decimal[2])
    if kind not in _INTEGERS:
        return None
    if isinstance(value, Literal) and isinstance(value.value, int):
        return len(str(abs(value.value))), 0
    return _INTEGERS[kind], 0


def _bounded(precision: int, scale: int) -> str:
    if precision > _WIDEST:
        precision, scale = _WIDEST, max(_WIDEST - (precision - scale), min(scale, _LEAST_SCALE))
    return f"decimal({precision},{scale})"
