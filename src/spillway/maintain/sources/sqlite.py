"""An SQLite file as a server: triggers write each change into a change table with a growing number.

SQLite has one writer at a time, so the numbers of a table grow in the order of commits, and the largest ones
that a transaction sees, one per table, are the place of a vector; the incarnation of a table is that of its
triggers (`sqlite_capture.py`). Known limit: types are those of the declaration, and a round is refused while
a table holds values of another type.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from spillway.errors import SourceError
from spillway.maintain.delta import WEIGHT, delta_schema
from spillway.maintain.execute import Answer
from spillway.maintain.identifier import quoted
from spillway.maintain.sources.change_tables import ChangeReaders, refuse_reserved
from spillway.maintain.sources.position import SourcePosition, new_mark, recreated, restored
from spillway.maintain.sources.server import Cut, SourceTable
from spillway.maintain.sources.sqlite_capture import NOW, SqliteCapture
from spillway.maintain.sources.sub_batch import SubBatch
from spillway.maintain.unify import KeySet
from spillway.model import Column

_WAIT_SECONDS = 30.0
_PYTHON = {"int64": int, "string": str, "binary": bytes, "double": float}
"""What SQLite's values of each type are in Python."""


class SqliteServer:
    """One SQLite file; `cooperative` allows temporary tables for the keys of a query."""

    def __init__(self, path: str | Path, *, cooperative: bool = True, sub_batch: int | None = None) -> None:
        self._path = str(path)
        self._cooperative = cooperative
        self._sub_batch = SubBatch(sub_batch)
        self._reader = ""
        self._connect()

    def columns(self, table: str) -> tuple[Column, ...]:
        found = self._connection.execute("SELECT name, type FROM pragma_table_info(?)", [table]).fetchall()
        if not found:
            raise SourceError(f"SQLite file {self._path} has no table {table}; check table in the job file")
        refuse_reserved(f"SQLite table {table} in {self._path}", (name for name, _ in found))
        return tuple(Column(name, _type(declared)) for name, declared in found)

    def install(self, tables: Sequence[str], reader: str, store: str = "") -> None:
        self._reader = reader
        with self._transaction("BEGIN IMMEDIATE"):
            self._readers.create()
            for table in tables:
                self._capture(table).create()
            self._readers.enter(reader, store, [table.lower() for table in tables])

    def resume(self, tables: Sequence[str], reader: str) -> None:  # noqa: ARG002 - triggers go on by themselves
        self._reader = reader

    def forget(self, tables: Sequence[str], reader: str, store: str = "") -> list[str]:
        with self._transaction("BEGIN IMMEDIATE"):
            if not self._known():
                return []
            self._readers.create()  # a file of an older version has only one of the two tables
            for relation in self._readers.leave(reader, store):
                self._capture(relation).drop()
            if self._readers.empty():
                self._readers.drop()
                return []
            return sorted({store for table in tables for store in self._readers.stores(table.lower())})

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        deltas = []
        with self._transaction():
            position = self._position(relations) if at is None else self._checked(relations, at)
            for relation in relations:
                names = ", ".join(quoted(column.name) for column in relation.columns)
                sql = f"SELECT {names}, 1 FROM {quoted(relation.table)}"
                if at is None:
                    deltas.append(self._fetch(sql, relation))
                else:
                    later = self._later_sql(relation, position, sign=-1)
                    deltas.append(self._fetch(f"{sql} UNION ALL {later}", relation))
        return Cut(position.text, tuple(deltas))

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        self._reconnect()
        with self._transaction():
            known = self._checked(relations, since)
            position = self._position(relations)
            deltas = tuple(self._fetch(self._later_sql(relation, known), relation) for relation in relations)
            if position.at == known.at:
                return Cut(since, deltas)
            return Cut(position.text, deltas, self._age_seconds(relations, known))

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        with self._transaction():
            rows = tuple(self._match(relation, key_set) for key_set in key_sets)
            return Answer(rows, self._fetch(self._later_sql(relation, SourcePosition.read(vector)), relation))

    def announce(self, tables: Sequence[str], reader: str, before: str | None, vector: str) -> None:
        position = SourcePosition.read(vector)
        with self._transaction("BEGIN IMMEDIATE"):
            self._check(tables, position)
            self._readers.announce(reader, before, position)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        position = SourcePosition.read(vector)
        with self._transaction("BEGIN IMMEDIATE"):
            self._check(tables, position)
            self._readers.confirm(reader, position)
            for table in tables:
                self._capture(table).prune(self._readers.least(table.lower()))

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

    def _connect(self) -> None:
        if not Path(self._path).is_file():
            raise SourceError(f"SQLite file {self._path} does not exist; check path in the job file")
        self._connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None)
        self._readers = ChangeReaders(self._connection, "spillway_", f"SQLite file {self._path}")

    def _reconnect(self) -> None:
        """After another file was copied over this one, an open connection may still show the old pages."""
        self._connection.close()
        self._connect()

    def _known(self) -> bool:
        found = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'spillway_readers'")
        return found.fetchone() is not None

    def _capture(self, table: str) -> SqliteCapture:
        return SqliteCapture(self._connection, table)

    def _checked(self, relations: Sequence[SourceTable], vector: str) -> SourcePosition:
        """The position of a vector, which must be that of the stored view; in a transaction."""
        position = SourcePosition.read(vector)
        self._check(sorted({relation.table for relation in relations}), position)
        if not self._known() or not self._readers.stands_at(self._reader, position.mark):
            raise restored(f"SQLite file {self._path}")
        return position

    def _check(self, tables: Sequence[str], position: SourcePosition) -> None:
        for table in tables:
            incarnation = self._capture(table).incarnation()
            if incarnation is None or incarnation != position.of.get(table.lower()):
                raise recreated(f"SQLite table {table} in {self._path}")

    def _position(self, relations: Sequence[SourceTable]) -> SourcePosition:
        """Now: the last number of every table."""
        captures = {
            table.lower(): self._capture(table) for table in {relation.table for relation in relations}
        }
        at = {name: capture.last() for name, capture in captures.items()}
        of = {name: capture.incarnation() or "" for name, capture in captures.items()}
        return SourcePosition(at, of, new_mark())

    def _age_seconds(self, relations: Sequence[SourceTable], since: SourcePosition) -> float | None:
        oldest = [
            self._connection.execute(
                f"SELECT {NOW} - min(spillway_at) FROM {self._capture(table).changes} "
                "WHERE spillway_number > ?",
                [since.at[table.lower()]],
            ).fetchall()[0][0]
            for table in {relation.table for relation in relations}
        ]
        return max((age for age in oldest if age is not None), default=None)

    def _later_sql(self, relation: SourceTable, position: SourcePosition, *, sign: int = 1) -> str:
        names = ", ".join(quoted(column.name) for column in relation.columns)
        return (
            f"SELECT {names}, {sign} * spillway_weight FROM {self._capture(relation.table).changes} "
            f"WHERE spillway_number > {int(position.at[relation.table.lower()])}"
        )

    def _match(self, relation: SourceTable, key_set: KeySet) -> pa.Table:
        names = ", ".join(f"r.{quoted(column.name)}" for column in relation.columns)
        table = quoted(relation.table)
        if not key_set.columns:
            return self._fetch(f"SELECT {names}, 1 FROM {table} r", relation).drop_columns([WEIGHT])
        keys = [f"k{place}" for place in key_set.columns]
        on = " AND ".join(f"r.{quoted(relation.columns[p].name)} = k.k{p}" for p in key_set.columns)
        values = list(zip(*(column.to_pylist() for column in key_set.keys.columns), strict=True))
        marks = f"({', '.join('?' for _ in keys)})"
        if self._cooperative:
            self._connection.execute("DROP TABLE IF EXISTS temp.spillway_keys")
            self._connection.execute(f"CREATE TEMP TABLE spillway_keys ({', '.join(keys)})")
            self._connection.executemany(f"INSERT INTO temp.spillway_keys VALUES {marks}", values)
            sql = f"SELECT {names}, 1 FROM temp.spillway_keys k JOIN {table} r ON {on}"
            return self._fetch(sql, relation).drop_columns([WEIGHT])
        parts = []
        for batch in self._sub_batch.timed(values):
            sql = (
                f"WITH k({', '.join(keys)}) AS (VALUES {', '.join([marks] * len(batch))}) "
                f"SELECT {names}, 1 FROM k JOIN {table} r ON {on}"
            )
            parts.append(self._fetch(sql, relation, [value for row in batch for value in row]))
        return pa.concat_tables(parts).drop_columns([WEIGHT])

    def _fetch(self, sql: str, relation: SourceTable, parameters: Sequence[object] = ()) -> pa.Table:
        """Rows with a weight; SQLite hands out Python rows, which are turned into columns as a whole."""
        rows = self._connection.execute(sql, parameters).fetchall()
        schema = delta_schema(relation.columns)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        if any(wrong := [_wrong(values, field) for values, field in zip(columns, schema, strict=True)]):
            rows = self._without(rows, relation, wrong)
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _without(
        self, rows: list[tuple[Any, ...]], relation: SourceTable, wrong: Sequence[set[type]]
    ) -> list[tuple[Any, ...]]:
        """Leave out rows with values of a wrong type that came and went again; refuse one that is there."""
        good, bad = list[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
        for row in rows:
            places = [place for place, value in enumerate(row) if type(value) in wrong[place]]
            if places:
                bad[(places[0], *((type(value), value) for value in row[:-1]))] += row[-1]
            else:
                good.append(row)
        for (place, *values), weight in bad.items():
            if weight:
                column = relation.columns[place]
                raise SourceError(
                    f"SQLite table {relation.table} in {self._path}: column {column.name} holds "
                    f"{values[place][1]!r}, which is not of its declared type ({column.type}); "
                    "correct or delete that row"
                )
        return good


def _wrong(values: Sequence[object], field: pa.Field) -> set[type]:
    """The types among some values that are not the one of a column."""
    return set(map(type, values)) - {type(None), _PYTHON[str(field.type)]}


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
