"""The columns of a Parquet file as Spark reads them: from the schema that Spark stored in the footer, or from
Parquet's own types.

Known limit: nested columns that Spark did not write, and types that Spark refuses or reads by settings, are
left to Spark.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.catalog.spark_json import columns_of_json
from spillway.model import Column
from spillway.plan.typing import NeedsSparkError

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_PLAIN = {
    "BOOLEAN": "boolean", "INT32": "int", "INT64": "bigint", "INT96": "timestamp", "FLOAT": "float",
    "DOUBLE": "double", "BYTE_ARRAY": "binary",
}  # fmt: skip
_INTEGERS = {
    (8, True): "tinyint", (16, True): "smallint", (32, True): "int", (64, True): "bigint",
    (8, False): "smallint", (16, False): "int", (32, False): "bigint", (64, False): "decimal(20,0)",
}  # fmt: skip
"""By width and sign; Spark has no unsigned integers, and takes the next wider type."""


def parquet_columns(path: str) -> tuple[Column, ...]:
    """The columns of the file at `path`."""
    try:
        footer = pq.read_metadata(path)
        stored = (footer.metadata or {}).get(SPARK_SCHEMA)
        if stored is not None:
            return columns_of_json(json.loads(stored)["fields"], path)
        columns = (footer.schema.column(number) for number in range(footer.num_columns))
        return tuple(Column(column.name, _type(column, path)) for column in columns)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise NeedsSparkError(f"{path} has a footer that only Spark can read") from None


def _type(column: Any, path: str) -> str:
    logical = json.loads(column.logical_type.to_json())
    kind, physical = logical["Type"], column.physical_type
    found = None
    if column.name != column.path or column.max_repetition_level:
        pass  # nested
    elif kind == "None":
        found = _PLAIN.get(physical)
    elif kind == "Int":
        found = _INTEGERS.get((logical["bitWidth"], logical["isSigned"]))
    elif kind == "Decimal":
        found = f"decimal({logical['precision']},{logical['scale']})"
    elif kind == "Timestamp" and logical["timeUnit"] in ("milliseconds", "microseconds"):
        found = "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    elif kind in ("String", "Enum", "JSON") and physical == "BYTE_ARRAY":
        found = "string"
    elif kind == "Date":
        found = "date"
    if found is None:
        raise NeedsSparkError(f"{path} has a column {column.path} of Parquet type {kind} {physical}")
    return found
