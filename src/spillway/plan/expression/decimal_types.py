"""Types of decimals as Spark has them: digits grow with every operation, up to 38.

Beyond 38 digits arithmetic gives up digits after the point, but keeps six of them; a common type, in which
decimals are compared or chosen, keeps the digits before the point. Integers count as decimals of all their
digits.
"""

from __future__ import annotations

import pyarrow as pa

MOST_DIGITS = 38
_LEAST_SCALE = 6
_INTEGERS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def digits(kind: pa.DataType) -> tuple[int, int]:
    """Digits in all, and digits after the point, of a decimal or an integer."""
    return (_INTEGERS[kind], 0) if kind in _INTEGERS else (kind.precision, kind.scale)


def exact_type(operator: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Precision and scale of `left operator right` before they are bounded."""
    (left_digits, left_scale), (right_digits, right_scale) = digits(left), digits(right)
    scale = max(left_scale, right_scale)
    whole = (left_digits - left_scale, right_digits - right_scale)
    if operator in "+-":
        return max(whole) + scale + 1, scale
    if operator == "*":
        return left_digits + right_digits + 1, left_scale + right_scale
    if operator == "/":
        scale = max(_LEAST_SCALE, left_scale + right_digits + 1)
        return whole[0] + right_scale + scale, scale
    return min(whole) + scale, scale


def result_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.Decimal128Type:
    """The type of `left operator right`, of `+ - * / %`."""
    precision, scale = exact_type(operator, left, right)
    if precision > MOST_DIGITS:
        scale = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return pa.decimal128(min(precision, MOST_DIGITS), scale)


def common_decimal(left: pa.DataType, right: pa.DataType) -> pa.Decimal128Type:
    """The type in which decimals, or a decimal and an integer, are compared or chosen."""
    (left_digits, left_scale), (right_digits, right_scale) = digits(left), digits(right)
    scale = max(left_scale, right_scale)
    precision = max(left_digits - left_scale, right_digits - right_scale) + scale
    lost = max(0, precision - MOST_DIGITS)
    return pa.decimal128(precision - lost, max(0, scale - lost))


def as_decimal(kind: pa.DataType) -> pa.Decimal128Type:
    """The decimal that an integer counts as beside a decimal; a decimal is itself."""
    return pa.decimal128(*digits(kind))
