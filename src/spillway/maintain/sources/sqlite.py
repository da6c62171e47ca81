"""An SQLite file as a server: triggers write each change into a change table with a growing number.

SQLite has one writer at a time, so the numbers of a table grow in the order of commits, and the largest ones
that a transaction sees, one per table, are a vector. Known limits: `INSERT OR REPLACE` deletes without firing
triggers unless the writer sets `PRAGMA recursive_triggers = on`; types are those of the declaration, and
values that do not fit are refused when they are read.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from spillway.errors import SourceError
from spillway.maintain.delta import WEIGHT, delta_schema
from spillway.maintain.execute import Answer
from spillway.maintain.sources.change_readers import EVENTS, READERS, left_by_all, trigger_name
from spillway.maintain.sources.server import Cut, Relation
from spillway.maintain.sources.sub_batch import SubBatch
from spillway.maintain.unify import KeySet
from spillway.plan.schema import Column

_WAIT_SECONDS = 30.0
_NOW = "(julianday('now') - 2440587.5) * 86400.0"
"""Seconds since 1970."""


class SqliteServer:
    """One SQLite file; `cooperative` allows temporary tables for the keys of a query."""

    def __init__(self, path: str | Path, *, cooperative: bool = True, sub_batch: int | None = None) -> None:
        if not Path(path).is_file():
            raise SourceError(f"SQLite file {path} does not exist; check path in the job file")
        self._path = str(path)
        self._connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None)
        self._cooperative = cooperative
        self._sub_batch = SubBatch(sub_batch)

    def columns(self, table: str) -> tuple[Column, ...]:
        found = self._connection.execute("SELECT name, type FROM pragma_table_info(?)", [table]).fetchall()
        if not found:
            raise SourceError(f"SQLite file {self._path} has no table {table}; check table in the job file")
        return tuple(Column(name, _type(declared)) for name, declared in found)

    def install(self, tables: Sequence[str], reader: str) -> None:
        with self._transaction("BEGIN IMMEDIATE"):
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS {READERS} (reader TEXT, relation TEXT, vector INTEGER, "
                "PRIMARY KEY (reader, relation))"
            )
            for table in tables:
                self._install(table)
                self._connection.execute(
                    f"INSERT OR IGNORE INTO {READERS} VALUES (?, ?, 0)", [reader, table.lower()]
                )

    def resume(self, tables: Sequence[str], reader: str) -> None:
        """Triggers record changes whoever reads them."""

    def forget(self, tables: Sequence[str], reader: str) -> None:
        known = self._connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'spillway_readers'"
        ).fetchall()
        if not known[0][0]:
            return
        with self._transaction("BEGIN IMMEDIATE"):
            for table in left_by_all(self._connection, tables, reader):
                for event in EVENTS:
                    trigger = _quoted(trigger_name(event, table))
                    self._connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
                self._connection.execute(f"DROP TABLE IF EXISTS {_changes(table)}")

    def load(self, relations: Sequence[Relation], at: str | None = None) -> Cut:
        deltas = []
        with self._transaction():
            vector = self._vector(relations)
            for relation in relations:
                names = ", ".join(map(_quoted, (column.name for column in relation.columns)))
                rows = self._fetch(f"SELECT {names}, 1 FROM {_quoted(relation.table)}", relation)
                later = [] if at is None else [self._later(relation, at, sign=-1)]
                deltas.append(pa.concat_tables([rows, *later]))
        return Cut(vector, tuple(deltas))

    def changes(self, relations: Sequence[Relation], since: str) -> Cut:
        with self._transaction():
            vector = self._vector(relations)
            deltas = tuple(self._later(relation, since) for relation in relations)
            return Cut(vector, deltas, self._age_seconds(relations, since))

    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer:
        with self._transaction():
            rows = tuple(self._match(relation, one) for one in key_sets)
            return Answer(rows, self._later(relation, vector))

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        with self._transaction("BEGIN IMMEDIATE"):
            for table in tables:
                self._connection.execute(
                    f"UPDATE {READERS} SET vector = ? WHERE reader = ? AND relation = ?",
                    [_number(vector, table), reader, table.lower()],
                )
                self._connection.execute(
                    f"DELETE FROM {_changes(table)} WHERE spillway_number <= "
                    f"(SELECT min(vector) FROM {READERS} WHERE relation = ?)",
                    [table.lower()],
                )

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self, begin: str = "BEGIN") -> Iterator[None]:
        try:
            self._connection.execute(begin)
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise SourceError(f"SQLite file {self._path}: {error}") from error
            raise

    def _install(self, table: str) -> None:
        columns = self._connection.execute(
            "SELECT name, type FROM pragma_table_info(?) ORDER BY cid", [table]
        ).fetchall()
        names = [_quoted(name) for name, _ in columns]
        declared = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns)
        changes = _changes(table)
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {changes} "
            f"(spillway_number INTEGER PRIMARY KEY AUTOINCREMENT, spillway_weight INTEGER NOT NULL, "
            f"spillway_at REAL NOT NULL DEFAULT ({_NOW}), {declared})"
        )
        kept = self._connection.execute(
            "SELECT name FROM pragma_table_info(?) ORDER BY cid", [f"spillway_changes_{table.lower()}"]
        ).fetchall()
        if [name for (name,) in kept[3:]] != [name for name, _ in columns]:
            raise SourceError(
                f"SQLite table {table} in {self._path} has other columns than when its changes were first "
                f"recorded; drop the table {changes} and its triggers, and load the view again"
            )
        for event, images in (("INSERT", [(1, "NEW")]), ("DELETE", [(-1, "OLD")]), ("UPDATE", None)):
            pairs = images or [(-1, "OLD"), (1, "NEW")]
            inserts = " ".join(
                f"INSERT INTO {changes} (spillway_weight, {', '.join(names)}) "
                f"VALUES ({weight}, {', '.join(f'{image}.{name}' for name in names)});"
                for weight, image in pairs
            )
            trigger = _quoted(trigger_name(event, table))
            self._connection.execute(
                f"CREATE TRIGGER IF NOT EXISTS {trigger} AFTER {event} ON {_quoted(table)} "
                f"FOR EACH ROW BEGIN {inserts} END"
            )

    def _vector(self, relations: Sequence[Relation]) -> str:
        """The last number of every table; AUTOINCREMENT keeps it though rows are deleted."""
        names = sorted({relation.table.lower() for relation in relations})
        last = dict(self._connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
        return json.dumps({name: last.get(f"spillway_changes_{name}", 0) for name in names})

    def _age_seconds(self, relations: Sequence[Relation], since: str) -> float | None:
        oldest = [
            self._connection.execute(
                f"SELECT {_NOW} - min(spillway_at) FROM {_changes(table)} WHERE spillway_number > ?",
                [_number(since, table)],
            ).fetchall()[0][0]
            for table in {relation.table for relation in relations}
        ]
        return max((age for age in oldest if age is not None), default=None)

    def _later(self, relation: Relation, vector: str, *, sign: int = 1) -> pa.Table:
        names = ", ".join(_quoted(column.name) for column in relation.columns)
        return self._fetch(
            f"SELECT {names}, {sign} * spillway_weight FROM {_changes(relation.table)} "
            "WHERE spillway_number > ?",
            relation,
            [_number(vector, relation.table)],
        )

    def _match(self, relation: Relation, key_set: KeySet) -> pa.Table:
        names = ", ".join(f"r.{_quoted(column.name)}" for column in relation.columns)
        table = _quoted(relation.table)
        if not key_set.columns:
            return self._fetch(f"SELECT {names}, 1 FROM {table} r", relation).drop_columns([WEIGHT])
        keys = [f"k{place}" for place in key_set.columns]
        on = " AND ".join(f"r.{_quoted(relation.columns[p].name)} = k.k{p}" for p in key_set.columns)
        values = list(zip(*(column.to_pylist() for column in key_set.keys.columns), strict=True))
        marks = f"({', '.join('?' for _ in keys)})"
        if self._cooperative:
            self._connection.execute("DROP TABLE IF EXISTS temp.spillway_keys")
            self._connection.execute(f"CREATE TEMP TABLE spillway_keys ({', '.join(keys)})")
            self._connection.executemany(f"INSERT INTO temp.spillway_keys VALUES {marks}", values)
            sql = f"SELECT {names}, 1 FROM temp.spillway_keys k JOIN {table} r ON {on}"
            return self._fetch(sql, relation).drop_columns([WEIGHT])
        parts, start = list[pa.Table](), 0
        while start < len(values):
            batch = values[start : start + self._sub_batch.size]
            start += len(batch)
            began = time.perf_counter()
            sql = (
                f"WITH k({', '.join(keys)}) AS (VALUES {', '.join([marks] * len(batch))}) "
                f"SELECT {names}, 1 FROM k JOIN {table} r ON {on}"
            )
            parts.append(self._fetch(sql, relation, [value for row in batch for value in row]))
            self._sub_batch.record(len(batch), time.perf_counter() - began)
        return pa.concat_tables(parts).drop_columns([WEIGHT])

    def _fetch(self, sql: str, relation: Relation, parameters: Sequence[object] = ()) -> pa.Table:
        """Rows with a weight; SQLite hands out Python rows, which are turned into columns as a whole."""
        rows = self._connection.execute(sql, parameters).fetchall()
        schema = delta_schema(relation.columns)
        columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
        try:
            arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SourceError(
                f"SQLite table {relation.table} in {self._path} holds a value that is not of its column's "
                f"declared type: {error}"
            ) from None
        return pa.Table.from_arrays(arrays, schema=schema)


def _type(declared: str) -> str:
    """The type of a column by SQLite's rules of affinity; what has none comes out as it was declared."""
    upper = declared.upper()
    for words, kind in (
        (("INT",), "bigint"),
        (("CHAR", "CLOB", "TEXT", "DATE", "TIME"), "string"),
        (("BLOB",), "binary"),
        (("REAL", "FLOA", "DOUB"), "double"),
    ):
        if any(word in upper for word in words):
            return kind
    return f"sqlite {declared or 'without a type'}"


def _number(vector: str, table: str) -> int:
    number: int = json.loads(vector).get(table.lower(), 0)
    return number


def _changes(table: str) -> str:
    return _quoted(f"spillway_changes_{table.lower()}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
