"""The type of a column of UNION ALL, when its branches have different types: as Spark's ANSI mode has it.

Known limit: types are widened where Spark keeps every value, and an integer or decimal beside a float becomes
a double. Any other pair gives None, also where Spark would convert a string.
"""

from __future__ import annotations

import re

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FLOATS = ("float", "double")
_DATES = ("date", "timestamp_ntz", "timestamp")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WIDEST = 38


def common_type(left: str, right: str) -> str | None:
    """The type that holds the values of both; None if there is none, or only Spark knows it."""
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=lambda kind: _INTEGERS[kind])
    if left in _DATES and right in _DATES:
        return max(left, right, key=_DATES.index)
    if not (_is_number(left) and _is_number(right)):
        return None
    if left in _FLOATS or right in _FLOATS:
        return "double"
    (left_whole, left_scale), (right_whole, right_scale) = _digits(left), _digits(right)
    scale = max(left_scale, right_scale)
    precision = max(left_whole, right_whole) + scale
    return f"decimal({precision},{scale})" if precision <= _WIDEST else None


def _is_number(kind: str) -> bool:
    return kind in _INTEGERS or kind in _FLOATS or _DECIMAL.fullmatch(kind) is not None


def _digits(kind: str) -> tuple[int, int]:
    """Digits before and after the point."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return _INTEGERS[kind], 0
    return int(decimal[1]) - int(decimal[2]), int(decimal[2])
