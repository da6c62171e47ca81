"""The files that commits of a Delta table add, from the table's log.

A commit that only moves rows to other files (`dataChange` false, as OPTIMIZE does) adds none. Rows are never
taken back by a scan, so a commit that removes rows is refused by name, and so are deletion vectors, column
mapping, and a change of the columns. Known limit: tables on this machine's file system.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from spillway.errors import SourceError, file_reason

if TYPE_CHECKING:
    from deltalake import DeltaTable

_FEATURES = frozenset({"timestampNtz"})
"""Features of readers that change nothing about how files are read."""
_PLAIN_READER = 1
_MAPPING = "delta.columnMapping.mode"
_REMEDY = "read the table as a stream of Spark, or write it without that"


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A file that a commit added."""

    path: str
    version: int
    bytes: int
    partitions: tuple[tuple[str, str | None], ...]
    """Its partition columns with their values as the log writes them, as `file_splits` takes them."""


def delta_version(root: str) -> int:
    """The newest version of the table; a table that scans cannot read is refused."""
    return int(_open(root, None).version())


def delta_id(root: str) -> str:
    """What tells the table from another one at the same place."""
    return str(_open(root, None).metadata().id)


def delta_snapshot(root: str, version: int) -> tuple[DeltaFile, ...]:
    """All files of the table at a version, by path."""
    actions = pa.RecordBatchReader.from_stream(_open(root, version).get_add_actions()).read_all()
    if "deletion_vector" in actions.column_names and actions["deletion_vector"].null_count < len(actions):
        raise _refusal(root, version, "deletion vectors")
    found = []
    columns = [name for name in ("path", "size_bytes", "partition") if name in actions.column_names]
    for action in actions.select(columns).to_pylist():  # a table without partitions has no such column
        given = action.get("partition") or {}
        values = {name: None if value is None else str(value) for name, value in given.items()}
        found.append(_file(root, version, action["path"], action["size_bytes"], values))
    return tuple(sorted(found, key=lambda file: file.path))


def delta_additions(root: str, first: int, last: int) -> tuple[DeltaFile, ...]:
    """The files with new rows of the versions `first` to `last`, in the order of the log."""
    _open(root, last)
    return tuple(file for version in range(first, last + 1) for file in _commit(root, version))


def _open(root: str, version: int | None) -> DeltaTable:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(root, version=version)
    except (DeltaError, OSError) as error:
        at = "" if version is None else f" at version {version}"
        told = " ".join(str(error).split())
        raise SourceError(f"Delta table {root}{at} cannot be read: {told}; check its path") from error
    protocol = table.protocol()
    _check_features(root, table.version(), protocol.min_reader_version, protocol.reader_features or ())
    _check_configuration(root, table.version(), table.metadata().configuration)
    return table


def _commit(root: str, version: int) -> Iterator[DeltaFile]:
    """The files of one commit; it is refused before the first if it takes rows back."""
    added: list[DeltaFile] = []
    for action in _actions(root, version):
        if (protocol := action.get("protocol")) is not None:
            features = protocol.get("readerFeatures") or ()
            _check_features(root, version, protocol["minReaderVersion"], features)
        if (metadata := action.get("metaData")) is not None:
            _check_configuration(root, version, metadata.get("configuration") or {})
            if version and json.loads(metadata["schemaString"]) != _schema(root, version - 1):
                raise _refusal(root, version, "a change of its columns")
        if (remove := action.get("remove")) is not None and remove.get("dataChange", True):
            raise _refusal(root, version, "removed rows (DELETE, UPDATE, MERGE or overwrite)")
        if (add := action.get("add")) is not None and add.get("dataChange", True):
            if add.get("deletionVector") is not None:
                raise _refusal(root, version, "deletion vectors")
            added.append(_file(root, version, add["path"], add["size"], add.get("partitionValues") or {}))
    yield from added


def _schema(root: str, version: int) -> Any:
    return json.loads(_open(root, version).schema().to_json())


def _actions(root: str, version: int) -> Iterator[dict[str, Any]]:
    path = Path(root) / "_delta_log" / f"{version:020d}.json"
    try:
        lines = path.read_text().splitlines()
        yield from [json.loads(line) for line in lines if line]
    except (OSError, ValueError) as error:
        raise SourceError(
            f"Delta table {root} has lost the log of version {version} ({path.name}): {file_reason(error)}; "
            "restore it, or start with a new checkpoint directory and an empty sink"
        ) from error


def _file(root: str, version: int, path: str, size: int, values: Mapping[str, str | None]) -> DeltaFile:
    plain = unquote(path)
    if "://" in plain:
        raise _refusal(root, version, f"a file outside its directory ({plain})")
    partitions = tuple((name, text or None) for name, text in values.items())
    return DeltaFile(str(Path(root) / plain), version, size, partitions)


def _check_features(root: str, version: int, reader: int, features: Sequence[str]) -> None:
    unknown = sorted(set(features) - _FEATURES)
    if unknown or (reader > _PLAIN_READER and not features):
        raise _refusal(root, version, ", ".join(unknown) or f"reader version {reader}")


def _check_configuration(root: str, version: int, configuration: Mapping[str, str]) -> None:
    if configuration.get(_MAPPING, "none") != "none":
        raise _refusal(root, version, "column mapping")


def _refusal(root: str, version: int, what: str) -> SourceError:
    return SourceError(f"Delta table {root} has {what} in version {version}; {_REMEDY}")
