"""Spark tables as a server: a directory of Delta and Parquet tables; every maintenance query is a Spark job.

A query reads exactly the files of the wanted version, so nothing has to be compensated. It is a scan with a
broadcast of its keys: fewer queries are fewer scans. What changed between two versions is read directly: it
has to come to the view manager anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.errors import SourceError
from spillway.maintain import Answer, KeySet, consolidate, delta_schema, negated, row_schema, weighted
from spillway.maintain.sources import Cut, SourcePosition, SourceTable, TableFiles, Version, recreated
from spillway.model import Column
from spillway.spark.maintain.spark_algebra import typed_frame


class SparkServer:
    """All tables below one directory."""

    def __init__(self, spark: SparkSession, root: str | Path) -> None:
        self._spark = spark
        self._tables = TableFiles(root)

    def columns(self, table: str) -> tuple[Column, ...]:
        return self._tables.columns(table)

    def install(self, tables: Sequence[str], reader: str, store: str = "") -> None:
        """Versions are kept by the tables themselves."""

    def resume(self, tables: Sequence[str], reader: str) -> None:
        """Nothing is kept for a reader."""

    def forget(self, tables: Sequence[str], reader: str, store: str = "") -> list[str]:  # noqa: ARG002
        """Nothing is kept for a reader."""
        return []

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        vector = at or self._vector(relations)
        if at is not None:
            self._check(at)
        rows = [
            self._collect(self._frame(relation, self._files(relation, vector)), relation)
            for relation in relations
        ]
        return Cut(vector, tuple(weighted(table) for table in rows))

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        self._check(since)
        vector = self._vector(relations)
        deltas = []
        for relation in relations:
            came, went = self._tables.between(
                relation.table, _version(since, relation), _version(vector, relation)
            )
            signed = [weighted(_read(relation, came)), negated(weighted(_read(relation, went)))]
            deltas.append(consolidate(pa.concat_tables(signed)))
        return Cut(vector, tuple(deltas))

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        files = self._files(relation, vector)
        rows = tuple(self._match(relation, key_set, files) for key_set in key_sets)
        return Answer(rows, delta_schema(relation.columns).empty_table())

    def announce(self, tables: Sequence[str], reader: str, before: str | None, vector: str) -> None:  # noqa: ARG002
        """What was read must still be there: nothing is marked at the source."""
        self._check(vector)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        """Nothing is kept for a reader."""

    def close(self) -> None:
        """The session is its owner's."""

    def _vector(self, relations: Sequence[SourceTable]) -> str:
        names = sorted({relation.table for relation in relations})
        versions = {name: self._tables.version(name) for name in names}
        identities = {name: self._tables.identity(name, version) for name, version in versions.items()}
        return SourcePosition(versions, identities).text

    def _check(self, vector: str) -> None:
        """Refuse a vector whose versions are not those of the tables that are there now."""
        position = SourcePosition.read(vector)
        for name, version in position.at.items():
            if self._tables.identity(name, version) != position.of[name]:
                raise recreated(f"table {name}")

    def _files(self, relation: SourceTable, vector: str) -> list[str]:
        return self._tables.files(relation.table, _version(vector, relation))

    def _frame(self, relation: SourceTable, files: Sequence[str]) -> DataFrame | None:
        """The rows of some files with the columns `c0`, `c1`, ...; None: there are none."""
        if not files:
            return None
        schema = ", ".join(f"`{column.name.replace('`', '``')}` {column.type}" for column in relation.columns)
        found = self._spark.read.schema(schema).parquet(*files)
        return found.toDF(*row_schema(relation.columns).names)

    def _match(self, relation: SourceTable, key_set: KeySet, files: Sequence[str]) -> pa.Table:
        frame = self._frame(relation, files)
        if frame is not None and key_set.columns:
            keys = typed_frame(self._spark, key_set.keys)
            frame = frame.join(F.broadcast(keys), key_set.keys.column_names, "leftsemi")
        return self._collect(frame, relation)

    def _collect(self, frame: DataFrame | None, relation: SourceTable) -> pa.Table:
        schema = row_schema(relation.columns)
        if frame is None:
            return schema.empty_table()
        try:
            return frame.select(*schema.names).toArrow().cast(schema)
        except PySparkException as error:
            raise SourceError(
                f"Spark cannot read table {relation.table}: {' '.join(str(error).split())[:300]}"
            ) from error


def _read(relation: SourceTable, files: Sequence[str]) -> pa.Table:
    schema = row_schema(relation.columns)
    names = [column.name for column in relation.columns]
    tables = []
    for file in files:
        try:
            tables.append(pq.read_table(file, columns=names).select(names).rename_columns(schema.names))
        except (OSError, pa.ArrowInvalid) as error:
            raise SourceError(
                f"file {file} of table {relation.table} cannot be read: {error}; "
                "run spillway maintain with --reload"
            ) from error
    return pa.concat_tables([table.cast(schema) for table in tables] or [schema.empty_table()])


def _version(vector: str, relation: SourceTable) -> Version:
    version: Version = SourcePosition.read(vector).at[relation.table]
    return version
