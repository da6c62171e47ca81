"""Types of expressions: Arrow's beside Spark's, and the common types of operands in Spark's ANSI mode.

Integers widen; any integer with a float gives double (Spark's guard against lost digits); a decimal with a
float gives double; decimals widen to hold both sides, up to 38 digits. Strings never turn into numbers: Spark
would, and may fail on a row, so the user is asked to cast.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.decimal_types import common_decimal
from spillway.plan.expression.decimals import from_integer, rescale

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_type(spark_type: str) -> pa.DataType | None:
    """The Arrow type of a Spark type, or None for one that expressions do not compute with."""
    if decimal := _DECIMAL.fullmatch(spark_type):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return {
        "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
        "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
        "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"), "void": pa.null(),
    }.get(spark_type)  # fmt: skip


def spark_type(kind: pa.DataType) -> str:
    """The Spark name of an Arrow type."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    names = {
        "bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
        "float": "float", "double": "double", "string": "string", "large_string": "string",
        "string_view": "string", "binary": "binary", "large_binary": "binary",
        "date32[day]": "date", "null": "void",
    }  # fmt: skip
    return names.get(str(kind), str(kind))


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


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
    return common_decimal(left, right)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return kind in _INTEGERS or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def promote(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """`array` in the wider type `kind`, which `common_type` gave."""
    if array.type == kind:
        return array
    if pa.types.is_decimal(kind) and not pa.types.is_null(array.type):
        return (rescale if pa.types.is_decimal(array.type) else from_integer)(array, kind)
    if pa.types.is_decimal(array.type) and pa.types.is_floating(kind):
        # Arrow's own conversion multiplies by a power of ten and may miss the nearest double.
        return pc.cast(pc.cast(array, pa.string()), kind)
    return pc.cast(array, kind, safe=not pa.types.is_floating(kind))
