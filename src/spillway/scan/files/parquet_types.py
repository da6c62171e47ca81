"""The Spark type that a Parquet column is read as, where Arrow and Spark read the same values from it.

Admitted, not excluded: unsigned integers, nanoseconds, times, fixed binaries, half floats, unknown
annotations and nested columns have no type here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_PLAIN: Mapping[str, str] = MappingProxyType(
    {
        "BOOLEAN": "boolean", "INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double",
        "BYTE_ARRAY": "binary", "INT96": "timestamp",
    }
)  # fmt: skip
_SIGNED: Mapping[tuple[str, int], str] = MappingProxyType(
    {
        ("INT32", 8): "tinyint", ("INT32", 16): "smallint", ("INT32", 32): "int", ("INT64", 64): "bigint",
    }
)  # fmt: skip
_DECIMAL_FORMS = frozenset({"INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"})
_UNITS = frozenset({"milliseconds", "microseconds"})


def parquet_type(column: Any) -> str | None:
    """The Spark type of a `pyarrow.parquet.ColumnSchema`; None if only Spark can tell."""
    if column.max_repetition_level or column.max_definition_level > 1:
        return None
    logical = json.loads(column.logical_type.to_json())
    kind, physical = logical["Type"], column.physical_type
    if kind == "None":
        return _PLAIN.get(physical)
    if kind == "Int":
        return _SIGNED.get((physical, logical["bitWidth"])) if logical["isSigned"] else None
    if kind == "Decimal" and physical in _DECIMAL_FORMS:
        return f"decimal({logical['precision']},{logical['scale']})"
    if kind == "Timestamp" and physical == "INT64" and logical["timeUnit"] in _UNITS:
        return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    if kind == "String" and physical == "BYTE_ARRAY":
        return "string"
    return "date" if kind == "Date" and physical == "INT32" else None
