"""Common types of operands, by the rules of Spark in ANSI mode.

Integers widen; any integer with a float gives double (Spark's guard against lost digits); a decimal with a
float gives double; decimals widen to hold both sides. Strings never turn into numbers: Spark would, and may
fail on a row, so the user is asked to cast.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.arrow_types import spark_type

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_WIDEST = 38


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which values of both types are compared or combined."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if not (is_number(left) and is_number(right)):
        raise ViewError(f"{spark_type(left)} and {spark_type(right)} do not mix; cast one of them")
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=_INTEGERS.index)
    (left_whole, left_scale), (right_whole, right_scale) = _digits(left), _digits(right)
    scale = max(left_scale, right_scale)
    precision = max(left_whole, right_whole) + scale
    if precision > _WIDEST:
        raise ViewError(
            f"{spark_type(left)} and {spark_type(right)} need more than 38 digits; cast one of them"
        )
    return pa.decimal128(precision, scale)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return kind in _INTEGERS or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def promote(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """`array` in the wider type `kind`, which `common_type` gave."""
    if array.type == kind:
        return array
    if pa.types.is_decimal(array.type) and pa.types.is_floating(kind):
        # Arrow's own conversion multiplies by a power of ten and may miss the nearest double.
        return pc.cast(pc.cast(array, pa.string()), kind)
    return pc.cast(array, kind, safe=not pa.types.is_floating(kind))


def _digits(kind: pa.DataType) -> tuple[int, int]:
    """Digits before and after the point."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    return kind.precision - kind.scale, kind.scale
