"""A Delta table by its log: columns, files, and which tables can be read without a Delta reader.

Known limit: tables with deletion vectors or column mapping are refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from spillway.catalog.spark_json import columns_of_json
from spillway.model import Column

if TYPE_CHECKING:
    from deltalake import DeltaTable

READER_FEATURES = frozenset({"timestampNtz"})
"""Features that do not change how files are read."""
_PLAIN_READER = 1


class DeltaFeatureError(Exception):
    """A table needs a feature that is not supported; the text names it."""


def open_delta(path: str) -> DeltaTable:
    """The table; one that needs more than its log and its files is refused."""
    from deltalake import DeltaTable

    table = DeltaTable(path)
    protocol = table.protocol()
    unknown = set(protocol.reader_features or ()) - READER_FEATURES
    if unknown or (protocol.min_reader_version > _PLAIN_READER and not protocol.reader_features):
        raise DeltaFeatureError(", ".join(sorted(unknown)) or f"reader version {protocol.min_reader_version}")
    return table


def delta_columns(table: DeltaTable, path: str) -> tuple[Column, ...]:
    return columns_of_json(json.loads(table.schema().to_json())["fields"], path)


def delta_files(table: DeltaTable, root: str, columns: Sequence[str]) -> dict[tuple[Any, ...], list[str]]:
    """The files by the values of their partition columns; the log has their paths encoded."""
    found: dict[tuple[Any, ...], list[str]] = {}
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    names = [f"partition.{name}" for name in columns]
    for action in actions.select(["path", *names]).to_pylist():
        path = unquote(action["path"])
        values = tuple(action[name] for name in names)
        found.setdefault(values, []).append(path if "://" in path else f"{root.rstrip('/')}/{path}")
    return found
