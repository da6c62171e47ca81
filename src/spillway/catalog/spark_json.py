"""Schemas as Spark writes them into Parquet footers and Delta logs: JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from spillway.model import Column
from spillway.plan.typing import NeedsSparkError

_NAMES = MappingProxyType(
    {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
    | {
        name: name
        for name in ("float", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")
    }
)
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)")
_HARMLESS = frozenset({"comment"})
"""Notes on a column that change nothing. Others make it an event time, or text with another order."""


def columns_of_json(fields: Sequence[Mapping[str, Any]], where: str) -> tuple[Column, ...]:
    """The columns of a schema; one that says more than these rules know is left to Spark."""
    return tuple(Column(str(field["name"]), _field_type(field, where)) for field in fields)


def _field_type(field: Mapping[str, Any], where: str) -> str:
    if set(field.get("metadata") or {}) - _HARMLESS:
        raise NeedsSparkError(f"{where} has notes on column {field['name']}")
    return _type(field["type"], where)


def _type(kind: Any, where: str) -> str:
    if isinstance(kind, str) and (kind in _NAMES or _DECIMAL.fullmatch(kind)):
        return _NAMES.get(kind, kind)
    shape = kind.get("type") if isinstance(kind, Mapping) else None
    if shape == "array":
        return f"array<{_type(kind['elementType'], where)}>"
    if shape == "map":
        return f"map<{_type(kind['keyType'], where)},{_type(kind['valueType'], where)}>"
    if shape == "struct" and all(re.fullmatch(r"\w+", str(field["name"])) for field in kind["fields"]):
        parts = (f"{field['name']}:{_field_type(field, where)}" for field in kind["fields"])
        return f"struct<{','.join(parts)}>"
    raise NeedsSparkError(f"{where} has a column of type {kind}")
