"""Spark types as Arrow types and back, for those that an expression over several inputs can compute with."""

from __future__ import annotations

import re

import pyarrow as pa

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
