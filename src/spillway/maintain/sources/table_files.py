"""The data files of Delta and Parquet tables below one directory, as they are at a version.

The version of a Delta table is its own; that of a directory of Parquet files is the list of its files, which
may only grow. Known limits: Delta tables that are partitioned, or keep deleted rows beside their files, are
refused here; `kind = "delta"` reads the former.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spillway.errors import SourceError
from spillway.maintain.sources.file_identity import delta_identity, files_identity
from spillway.maintain.sources.position import recreated
from spillway.model import Column
from spillway.plan.expression import spark_type

Version = int | list[str]
_REFUSED = frozenset({"deletionVectors", "columnMapping"})


class TableFiles:
    """All tables below one directory; a table's name is its path there."""

    def __init__(self, root: str | Path) -> None:
        if not Path(root).is_dir():
            raise SourceError(f"directory {root} of tables does not exist; check path in the job file")
        self._root = Path(root)

    def columns(self, table: str) -> tuple[Column, ...]:
        files = self.files(table, self.version(table))
        if self._is_delta(table):
            schema: Any = self._delta(table, None).to_pyarrow_dataset().schema
        elif files:
            schema = pq.read_schema(files[0])
        else:
            raise SourceError(
                f"Parquet table {self._root / table} has no files; it needs one for its columns"
            )
        return tuple(Column(field.name, spark_type(field.type)) for field in schema)

    def version(self, table: str) -> Version:
        """The current version."""
        if self._is_delta(table):
            return self._delta(table, None).version()
        path = self._root / table
        if not path.is_dir():
            raise SourceError(f"there is no table {path}; check table in the job file")
        return sorted(
            file.relative_to(path).as_posix() for file in path.rglob("*.parquet") if file.name[0] not in "._"
        )

    def files(self, table: str, version: Version) -> list[str]:
        """The files of a version, sorted."""
        if isinstance(version, int):
            return sorted(self._delta(table, version).file_uris())
        return [str(self._root / table / name) for name in version]

    def identity(self, table: str, version: Version) -> str:
        """Distinguishes this version from one of a table that was recreated or restored."""
        try:
            if isinstance(version, int):
                return delta_identity(self._delta(table, version))
            return files_identity(self.files(table, version))
        except (SourceError, FileNotFoundError) as error:
            self.version(table)  # the table itself may be missing, which is another error
            raise recreated(f"table {self._root / table}") from error

    def between(self, table: str, since: Version, until: Version) -> tuple[list[str], list[str]]:
        """The files that came and those that went; of a Parquet table none may have gone."""
        old, new = set(self.files(table, since)), set(self.files(table, until))
        return sorted(new - old), sorted(old - new)

    def _is_delta(self, table: str) -> bool:
        return (self._root / table / "_delta_log").is_dir()

    def _delta(self, table: str, version: int | None) -> DeltaTable:
        path = self._root / table
        try:
            found = DeltaTable(path, version=version)
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise SourceError(
                f"Delta table {path}{at} cannot be read: {' '.join(str(error).split())}"
            ) from error
        features = set(found.protocol().reader_features or ())
        if found.metadata().partition_columns or features & _REFUSED:
            raise SourceError(
                f"Delta table {path} is partitioned or has {', '.join(sorted(_REFUSED))}, "
                'which Spark jobs over its files cannot read; use kind = "delta"'
            )
        return found
