"""A DuckDB file as a server: statement triggers write changes into a change table.

Change numbers come from a sequence, which is not transactional: a smaller number may commit later. So a
vector is, per table, exactly which numbers were seen (`seen_numbers.py`). A file has one writing process:
writers in other processes must close it before a round, writers in this process use cursors of the same
connection. Known limit: DuckDB refuses upserts on a table with triggers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from spillway.errors import SourceError
from spillway.maintain.delta import WEIGHT, delta_schema
from spillway.maintain.execute import Answer
from spillway.maintain.sources.change_readers import EVENTS, READERS, left_by_all, trigger_name
from spillway.maintain.sources.seen_numbers import SeenNumbers
from spillway.maintain.sources.server import Cut, Relation
from spillway.maintain.sources.sub_batch import SubBatch
from spillway.maintain.unify import KeySet
from spillway.plan.schema import Column

_NUMBER = "spillway_number"
_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint",
    "UTINYINT": "smallint", "USMALLINT": "int", "UINTEGER": "bigint", "UBIGINT": "decimal(20,0)",
    "FLOAT": "float", "DOUBLE": "double", "VARCHAR": "string", "BLOB": "binary", "DATE": "date",
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp",
}  # fmt: skip


class DuckDbServer:
    """One DuckDB file, or a connection that other parts of this process write through."""

    def __init__(
        self,
        database: str | Path | duckdb.DuckDBPyConnection,
        *,
        cooperative: bool = True,
        sub_batch: int | None = None,
    ) -> None:
        self._cooperative = cooperative
        self._sub_batch = SubBatch(sub_batch)
        if isinstance(database, duckdb.DuckDBPyConnection):
            self._connection = database.cursor()
        elif not Path(database).is_file():
            raise SourceError(f"DuckDB file {database} does not exist; check path in the job file")
        else:
            try:
                self._connection = duckdb.connect(str(database))
            except duckdb.Error as error:
                raise SourceError(f"DuckDB file {database} cannot be opened: {error}") from error
        self._connection.execute("SET TimeZone = 'UTC'")

    def columns(self, table: str) -> tuple[Column, ...]:
        return tuple(Column(name, _type(kind)) for name, kind in self._described(table))

    def install(self, tables: Sequence[str], reader: str) -> None:
        with self._transaction():
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS {READERS} "
                "(reader VARCHAR, relation VARCHAR, vector VARCHAR, PRIMARY KEY (reader, relation))"
            )
            for table in tables:
                self._record_changes(table)
                self._connection.execute(
                    f"INSERT INTO {READERS} VALUES (?, ?, '{{}}') ON CONFLICT DO NOTHING",
                    [reader, table.lower()],
                )

    def resume(self, tables: Sequence[str], reader: str) -> None:
        """Triggers record changes whoever reads them."""

    def forget(self, tables: Sequence[str], reader: str) -> None:
        known = self._connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'spillway_readers'"
        ).fetchall()
        if not known[0][0]:
            return
        with self._transaction():
            for table in left_by_all(self._connection, tables, reader):
                for event in EVENTS:
                    trigger = _quoted(trigger_name(event, table))
                    self._connection.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {_quoted(table)}")
                self._connection.execute(f"DROP TABLE IF EXISTS {_changes(table)}")

    def load(self, relations: Sequence[Relation], at: str | None = None) -> Cut:
        with self._transaction():
            vector = self._vector(relations, at or "{}")
            deltas = []
            for relation in relations:
                sql = f"SELECT {_columns(relation)}, 1 FROM {_quoted(relation.table)} r"
                later = [] if at is None else [self._later(relation, at, sign=-1)]
                deltas.append(pa.concat_tables([self._fetch(sql, relation), *later]))
        return Cut(vector, tuple(deltas))

    def changes(self, relations: Sequence[Relation], since: str) -> Cut:
        with self._transaction():
            vector = self._vector(relations, since)
            deltas = tuple(self._later(relation, since) for relation in relations)
            return Cut(vector, deltas, self._age_seconds(relations, since))

    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer:
        with self._transaction():
            rows = tuple(self._match(relation, one).drop_columns([WEIGHT]) for one in key_sets)
            return Answer(rows, self._later(relation, vector))

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        with self._transaction():
            for table in tables:
                self._connection.execute(
                    f"UPDATE {READERS} SET vector = ? WHERE reader = ? AND relation = ?",
                    [vector, reader, table.lower()],
                )
                vectors = self._connection.execute(
                    f"SELECT vector FROM {READERS} WHERE relation = ?", [table.lower()]
                ).fetchall()
                needed = " OR ".join(_seen(one, table).unseen_sql(_NUMBER) for (one,) in vectors)
                self._connection.execute(f"DELETE FROM {_changes(table)} WHERE NOT ({needed})")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._connection.rollback()
            if isinstance(error, duckdb.Error):
                raise SourceError(f"DuckDB source: {str(error).splitlines()[0]}") from error
            raise

    def _described(self, table: str) -> list[tuple[str, str]]:
        found = self._connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() "
            "WHERE lower(table_name) = lower(?) AND NOT internal ORDER BY column_index",
            [table],
        ).fetchall()
        if not found:
            raise SourceError(f"the DuckDB source has no table {table}; check table in the job file")
        return found

    def _record_changes(self, table: str) -> None:
        columns = self._described(table)
        names = ", ".join(_quoted(name) for name, _ in columns)
        changes, sequence = _changes(table), _quoted(f"spillway_numbers_{table.lower()}")
        self._connection.execute(f"CREATE SEQUENCE IF NOT EXISTS {sequence}")
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {changes} (spillway_number BIGINT DEFAULT nextval('{sequence}'), "
            "spillway_weight BIGINT, spillway_at TIMESTAMPTZ DEFAULT now(), "
            + ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns)
            + ")"
        )
        if self._described(f"spillway_changes_{table.lower()}")[3:] != columns:
            raise SourceError(
                f"DuckDB table {table} has other columns than when its changes were first recorded; "
                f"drop the table {changes} and its triggers, and load the view again"
            )
        old = f"SELECT -1, {names} FROM spillway_old"
        new = f"SELECT 1, {names} FROM spillway_new"
        for event, images, select in (
            ("INSERT", "NEW TABLE AS spillway_new", new),
            ("DELETE", "OLD TABLE AS spillway_old", old),
            ("UPDATE", "OLD TABLE AS spillway_old NEW TABLE AS spillway_new", f"{old} UNION ALL {new}"),
        ):
            trigger = _quoted(trigger_name(event, table))
            self._connection.execute(
                f"CREATE TRIGGER IF NOT EXISTS {trigger} AFTER {event} ON {_quoted(table)} "
                f"REFERENCING {images} FOR EACH STATEMENT "
                f"INSERT INTO {changes} (spillway_weight, {names}) {select}"
            )

    def _vector(self, relations: Sequence[Relation], since: str) -> str:
        vector = json.loads(since)
        for table in sorted({relation.table for relation in relations}):
            seen = _seen(since, table)
            sql = f"SELECT {_NUMBER} FROM {_changes(table)} WHERE {seen.unseen_sql(_NUMBER)}"
            numbers = self._connection.sql(sql).fetchnumpy()[_NUMBER].astype(np.int64)
            seen = seen.with_numbers(numbers)
            vector[table.lower()] = [seen.high, [list(one) for one in seen.missing]]
        return json.dumps(vector)

    def _age_seconds(self, relations: Sequence[Relation], since: str) -> float | None:
        oldest = [
            self._connection.execute(
                f"SELECT date_diff('microsecond', min(spillway_at), now()) FROM {_changes(table)} "
                f"WHERE {_seen(since, table).unseen_sql(_NUMBER)}"
            ).fetchall()[0][0]
            for table in {relation.table for relation in relations}
        ]
        return max((age / 1e6 for age in oldest if age is not None), default=None)

    def _later(self, relation: Relation, vector: str, *, sign: int = 1) -> pa.Table:
        condition = _seen(vector, relation.table).unseen_sql(f"r.{_NUMBER}")
        source = f"{_changes(relation.table)} r WHERE {condition}"
        return self._fetch(f"SELECT {_columns(relation)}, {sign} * spillway_weight FROM {source}", relation)

    def _match(self, relation: Relation, key_set: KeySet) -> pa.Table:
        select, table = f"SELECT {_columns(relation)}, 1", _quoted(relation.table)
        if not key_set.columns:
            return self._fetch(f"{select} FROM {table} r", relation)
        on = " AND ".join(f"r.{_quoted(relation.columns[p].name)} = k.c{p}" for p in key_set.columns)
        if self._cooperative:
            self._connection.register("spillway_keys", key_set.keys)
            rows = self._fetch(f"{select} FROM spillway_keys k JOIN {table} r ON {on}", relation)
            self._connection.unregister("spillway_keys")
            return rows
        names = ", ".join(f"c{place}" for place in key_set.columns)
        marks = f"({', '.join('?' for _ in key_set.columns)})"
        values = list(zip(*(column.to_pylist() for column in key_set.keys.columns), strict=True))
        parts, start = list[pa.Table](), 0
        while start < len(values):
            batch = values[start : start + self._sub_batch.size]
            start += len(batch)
            began = time.perf_counter()
            sql = (
                f"{select} FROM (VALUES {', '.join([marks] * len(batch))}) k({names}) JOIN {table} r ON {on}"
            )
            parts.append(self._fetch(sql, relation, [value for row in batch for value in row]))
            self._sub_batch.record(len(batch), time.perf_counter() - began)
        return pa.concat_tables(parts)

    def _fetch(self, sql: str, relation: Relation, parameters: Sequence[object] = ()) -> pa.Table:
        table: pa.Table = self._connection.sql(sql, params=list(parameters)).to_arrow_table()
        schema = delta_schema(relation.columns)
        return table.rename_columns(schema.names).cast(schema)


def _seen(vector: str, table: str) -> SeenNumbers:
    high, missing = json.loads(vector).get(table.lower(), (0, ()))
    return SeenNumbers(high, tuple((first, last) for first, last in missing))


def _columns(relation: Relation) -> str:
    return ", ".join(f"r.{_quoted(column.name)}" for column in relation.columns)


def _type(kind: str) -> str:
    return _TYPES.get(kind, kind.lower())


def _changes(table: str) -> str:
    return _quoted(f"spillway_changes_{table.lower()}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
