"""`floor`, `ceil`, `round`, `sqrt` and `sign` as Spark computes them.

Known limit: no `round` of floating-point numbers, which Spark rounds in the digits in which Java writes them.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.casts import cast
from spillway.plan.expression.decimal_types import MOST_DIGITS
from spillway.plan.expression.decimals import add, rescale, truncate
from spillway.plan.expression.types import is_number, promote, spark_type


def floor(value: pa.Array) -> pa.Array:
    """The largest whole number that is not above."""
    return _whole(value, "floor", pc.floor, pc.less, "-")


def ceil(value: pa.Array) -> pa.Array:
    """The smallest whole number that is not below."""
    return _whole(value, "ceil", pc.ceil, pc.greater, "+")


def round_half_up(value: pa.Array, places: int = 0) -> pa.Array:
    """`round(value, places)`; halves away from zero."""
    kind = value.type
    if pa.types.is_integer(kind) and places >= 0:
        return value
    if not pa.types.is_decimal(kind) or places < 0:
        raise ViewError(
            f"round({spark_type(kind)}, {places}) is not supported over several inputs; "
            "round a decimal to its digits after the point, or round before the inputs are combined"
        )
    scale = min(kind.scale, places)
    return rescale(value, pa.decimal128(min(kind.precision - kind.scale + 1 + scale, MOST_DIGITS), scale))


def square_root(value: pa.Array) -> pa.Array:
    """`sqrt(value)`; NaN below zero."""
    return pc.sqrt(_double(value, "sqrt"))


def sign(value: pa.Array) -> pa.Array:
    """-1, 0 or 1, as a double; a zero keeps its sign."""
    number = _double(value, "sign")
    return pc.if_else(pc.not_equal(number, pc.negate(number)), pc.sign(number), number)


def _whole(
    value: pa.Array,
    name: str,
    kernel: Callable[[pa.Array], pa.Array],
    beyond: Callable[[pa.Array, pa.Array], pa.Array],
    operator: str,
) -> pa.Array:
    kind = value.type
    if pa.types.is_integer(kind):
        return pc.cast(value, pa.int64())
    if pa.types.is_decimal(kind) and not kind.scale:
        return value
    if pa.types.is_decimal(kind):
        cut = truncate(value)
        missing = pc.cast(pc.cast(beyond(value, rescale(cut, kind)), pa.int8()), pa.decimal128(3, 0))
        whole = add(operator, cut, missing)
        return rescale(whole, pa.decimal128(min(kind.precision - kind.scale + 1, MOST_DIGITS), 0))
    return cast(kernel(_double(value, name)), "bigint")


def _double(value: pa.Array, name: str) -> pa.Array:
    if not is_number(value.type) and not pa.types.is_null(value.type):
        raise ViewError(f"{name} of {spark_type(value.type)} is not supported; cast it to a number")
    return promote(value, pa.float64())
