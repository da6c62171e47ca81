"""Delta tables as a server: a directory of tables, each read at a version.

A vector has the version of every table, and the identity of that version (`file_identity.py`): a table that
was recreated, or of which an older copy was restored, has another. Versions make compensation needless: a
query reads exactly the wanted version, however many came after it. The changes between two versions are the
rows of the files that were added minus those of the files that were removed. A query is a scan, so fewer
queries are fewer scans. Known limit: a version whose files were vacuumed cannot be read; then the view must
be loaded again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pa_dataset
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spillway.errors import SourceError
from spillway.maintain.algebra import consolidate, negated, weighted
from spillway.maintain.delta import delta_schema, row_schema
from spillway.maintain.execute import Answer
from spillway.maintain.identifier import quoted
from spillway.maintain.sources.file_identity import delta_identity
from spillway.maintain.sources.position import SourcePosition, recreated
from spillway.maintain.sources.server import Cut, SourceTable
from spillway.maintain.unify import KeySet
from spillway.model import Column
from spillway.plan.expression import spark_type


class DeltaServer:
    """All Delta tables below one directory; a table's name is its path there."""

    def __init__(self, root: str | Path) -> None:
        if not Path(root).is_dir():
            raise SourceError(f"directory {root} of Delta tables does not exist; check path in the job file")
        self._root = Path(root)
        self._connection = duckdb.connect()

    def columns(self, table: str) -> tuple[Column, ...]:
        schema = self._dataset(table, None).schema
        return tuple(Column(field.name, spark_type(field.type)) for field in schema)

    def install(self, tables: Sequence[str], reader: str, store: str = "") -> None:
        """Versions are kept by Delta itself."""

    def resume(self, tables: Sequence[str], reader: str) -> None:
        """Nothing is kept for a reader."""

    def forget(self, tables: Sequence[str], reader: str, store: str = "") -> list[str]:  # noqa: ARG002
        """Nothing is kept for a reader."""
        return []

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        vector = at or self._vector(relations)
        if at is not None:
            self._check(at)
        return Cut(vector, tuple(weighted(self._match(relation, None, vector)) for relation in relations))

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        vector = self._vector(relations)
        if SourcePosition.read(vector) == SourcePosition.read(since):
            return Cut(since, tuple(delta_schema(relation.columns).empty_table() for relation in relations))
        self._check(since)
        deltas = tuple(self._between(relation, since, vector) for relation in relations)
        return Cut(vector, deltas, self._age_seconds(since, vector))

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        rows = tuple(self._match(relation, key_set, vector) for key_set in key_sets)
        return Answer(rows, delta_schema(relation.columns).empty_table())

    def announce(self, tables: Sequence[str], reader: str, before: str | None, vector: str) -> None:  # noqa: ARG002
        """What was read must still be there: nothing is marked at the source."""
        self._check(vector)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        """Nothing is kept for a reader."""

    def close(self) -> None:
        self._connection.close()

    def _table(self, table: str, version: int | None) -> DeltaTable:
        path = self._root / table
        try:
            return DeltaTable(path, version=version)
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise SourceError(
                f"Delta table {path}{at} cannot be read: {' '.join(str(error).split())}"
            ) from error

    def _dataset(self, table: str, version: int | None) -> Any:
        return self._table(table, version).to_pyarrow_dataset()

    def _vector(self, relations: Sequence[SourceTable]) -> str:
        names = sorted({relation.table for relation in relations})
        tables = {name: self._table(name, None) for name in names}
        return SourcePosition(
            {name: table.version() for name, table in tables.items()},
            {name: delta_identity(table) for name, table in tables.items()},
        ).text

    def _check(self, vector: str) -> None:
        """Refuse a vector whose versions are not those of the tables that are there now."""
        position = SourcePosition.read(vector)
        for name, version in position.at.items():
            now = self._table(name, None)
            try:
                found = delta_identity(now if now.version() == version else self._table(name, version))
            except SourceError as error:
                raise recreated(f"Delta table {self._root / name}") from error
            if found != position.of[name]:
                raise recreated(f"Delta table {self._root / name}")

    def _age_seconds(self, since: str, until: str) -> float | None:
        """By the clock of the writers, which their commits carry."""
        oldest = []
        for table, last in SourcePosition.read(until).at.items():
            if (count := last - _version(since, table)) > 0:
                stamps = [entry["timestamp"] for entry in self._table(table, last).history(count)]
                oldest.append(time.time() - min(stamps) / 1000)
        return max(oldest, default=None)

    def _between(self, relation: SourceTable, since: str, until: str) -> pa.Table:
        first, last = _version(since, relation.table), _version(until, relation.table)
        if first == last:
            return delta_schema(relation.columns).empty_table()
        before, after = (self._dataset(relation.table, version) for version in (first, last))
        old, new = (
            {fragment.path: fragment for fragment in dataset.get_fragments()} for dataset in (before, after)
        )
        removed = self._read(relation, before, [old[path] for path in old if path not in new])
        added = self._read(relation, after, [new[path] for path in new if path not in old])
        return consolidate(pa.concat_tables([weighted(added), negated(weighted(removed))]))

    def _read(self, relation: SourceTable, dataset: Any, fragments: list[Any]) -> pa.Table:
        if not fragments:
            return row_schema(relation.columns).empty_table()
        some = pa_dataset.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)
        try:
            table = some.to_table(columns=[column.name for column in relation.columns])
        except OSError as error:
            raise SourceError(
                f"Delta table {relation.table}: {error}; run spillway maintain with --reload"
            ) from error
        return _named(table, relation)

    def _match(self, relation: SourceTable, key_set: KeySet | None, vector: str) -> pa.Table:
        dataset = self._dataset(relation.table, _version(vector, relation.table))
        if key_set is None or not key_set.columns:
            return self._read(relation, dataset, list(dataset.get_fragments()))
        self._connection.register("rows", dataset)
        self._connection.register("keys", key_set.keys)
        items = ", ".join(f"r.{quoted(column.name)}" for column in relation.columns)
        on = " AND ".join(f"r.{quoted(relation.columns[p].name)} = k.c{p}" for p in key_set.columns)
        found = self._connection.sql(f"SELECT {items} FROM rows r JOIN keys k ON {on}").to_arrow_table()
        return _named(found, relation)


def _named(table: pa.Table, relation: SourceTable) -> pa.Table:
    schema = row_schema(relation.columns)
    return table.rename_columns(schema.names).cast(schema)


def _version(vector: str, table: str) -> int:
    version: int = SourcePosition.read(vector).at[table]
    return version
