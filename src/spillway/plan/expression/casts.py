"""`CAST` where Arrow gives what Spark gives in ANSI mode; every other pair of types is refused.

Known limit: no parsing of strings (Spark trims and accepts forms that Arrow does not), no text and no decimal
of floating-point numbers (both follow how Java writes them), and nothing that depends on the session's time
zone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.decimals import truncate
from spillway.plan.expression.types import arrow_type, promote, spark_type

_EXACT_DIGITS = 15
"""Spark casts decimals to small integers through doubles, which tell decimals of up to 15 digits apart."""

_LOCAL = pa.timestamp("us")


def cast(value: pa.Array, target: str) -> pa.Array:
    """`CAST(value AS target)`."""
    kind = arrow_type(target)
    if kind is not None:
        if value.type == kind or pa.types.is_null(value.type):
            return pc.cast(value, kind)
        converted = _convert(value, kind)
        if converted is not None:
            return converted
    raise ViewError(
        f"CAST of {spark_type(value.type)} to {target} is not supported over several inputs; "
        "cast the columns before they are combined"
    )


def _convert(value: pa.Array, kind: pa.DataType) -> pa.Array | None:
    source = value.type
    if pa.types.is_integer(source) and pa.types.is_integer(kind):
        return _integer(value, kind)
    if (pa.types.is_integer(source) or pa.types.is_floating(source)) and pa.types.is_floating(kind):
        return pc.cast(value, kind, safe=False)
    if pa.types.is_floating(source) and pa.types.is_integer(kind):
        return _truncate(value, kind)
    if pa.types.is_decimal(source):
        return _decimal(value, kind)
    if pa.types.is_decimal(kind) and pa.types.is_integer(source):
        return promote(value, kind)
    if pa.types.is_decimal(kind) and pa.types.is_boolean(source):
        return promote(pc.cast(value, pa.int8()), kind)
    if pa.types.is_string(kind) and (pa.types.is_integer(source) or pa.types.is_date(source)):
        return pc.cast(value, kind)
    if pa.types.is_boolean(source) and (pa.types.is_integer(kind) or pa.types.is_string(kind)):
        return pc.cast(value, kind)
    if source == _LOCAL and pa.types.is_date(kind):
        return pc.cast(pc.floor_temporal(value, unit="day"), kind)
    return pc.cast(value, kind) if pa.types.is_date(source) and kind == _LOCAL else None


def _decimal(value: pa.Array, kind: pa.DataType) -> pa.Array | None:
    source = value.type
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return promote(value, kind)
    if pa.types.is_string(kind):
        return _digits(value)
    narrow = pa.types.is_integer(kind) and kind != pa.int64()
    if pa.types.is_integer(kind) and not (narrow and source.scale and source.precision > _EXACT_DIGITS):
        return _integer(truncate(value), kind)
    return None


def _digits(value: pa.Array) -> pa.Array:
    """A decimal in plain digits, never with an exponent."""
    scale = value.type.scale
    if not len(value):
        return pa.nulls(0, pa.string())
    text = pc.cast(pc.abs(value).view(pa.decimal128(value.type.precision, 0)), pa.string())
    if scale:
        text = pc.utf8_lpad(text, scale + 1, padding="0")
        whole, fraction = pc.utf8_slice_codeunits(text, 0, -scale), pc.utf8_slice_codeunits(text, -scale)
        text = pc.binary_join_element_wise(whole, fraction, ".")
    sign = pc.if_else(pc.less(value, pa.scalar(0, value.type)), "-", "")
    return pc.binary_join_element_wise(sign, text, "")


def _integer(value: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return pc.cast(value, kind)
    except pa.ArrowInvalid:
        raise _overflow(value, kind) from None


def _truncate(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Towards zero; outside the target's range is an error, and so is NaN."""
    limit = 2.0 ** (kind.bit_width - 1)
    whole = pc.trunc(promote(value, pa.float64()))
    inside = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
    if not pc.all(inside, min_count=0).as_py():
        raise _overflow(value, kind)
    return pc.cast(whole, kind)


def _overflow(value: pa.Array, kind: pa.DataType) -> ViewError:
    wide, narrow = spark_type(value.type), spark_type(kind)
    return ViewError(f"cast overflow: a {wide} does not fit into {narrow}; cast to a wider type")
