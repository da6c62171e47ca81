"""A DuckDB file as a server: the changes of a table are found by comparing it (`duckdb_capture.py`).

A vector has the number of the last look at each table. A file has one writing process: writers in other
processes must close it before a round, and while we have it open nothing changes; so one look per round is
enough. Writers in this process use cursors of the same connection; then every answer needs a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from spillway.errors import SourceError, disk_reason
from spillway.maintain.delta import WEIGHT, delta_schema
from spillway.maintain.execute import Answer
from spillway.maintain.identifier import quoted
from spillway.maintain.sources.change_tables import ChangeReaders, refuse_reserved
from spillway.maintain.sources.duckdb_capture import SCHEMA, DuckDbCapture
from spillway.maintain.sources.position import SourcePosition, new_mark, recreated, restored
from spillway.maintain.sources.server import Cut, SourceTable
from spillway.maintain.sources.sub_batch import SubBatch
from spillway.maintain.unify import KeySet
from spillway.model import Column

_OLD = "spillway_readers"
"""In the schema `main`: left by a version that recorded changes by triggers."""
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
        self._reader, self._place = "", str(database)
        self._shared = isinstance(database, duckdb.DuckDBPyConnection)
        if isinstance(database, duckdb.DuckDBPyConnection):
            self._connection, self._place = database.cursor(), "in memory"
        elif not Path(database).is_file():
            raise SourceError(f"DuckDB file {database} does not exist; check path in the job file")
        else:
            try:
                self._connection = duckdb.connect(str(database))
            except duckdb.Error as error:
                raise SourceError(f"DuckDB file {database} cannot be opened: {error}") from error
        self._connection.execute("SET TimeZone = 'UTC'")
        self._readers = ChangeReaders(self._connection, f"{SCHEMA}.", f"DuckDB source {self._place}")
        self._numbers: dict[str, int] = {}
        """The last look at each table of a file that nobody else can write to."""

    def columns(self, table: str) -> tuple[Column, ...]:
        found = self._capture(table).columns()
        refuse_reserved(f"DuckDB table {table} in {self._place}", (name for name, _ in found))
        return tuple(Column(name, _type(kind)) for name, kind in found)

    def install(self, tables: Sequence[str], reader: str, store: str = "") -> None:
        self._reader = reader
        with self._transaction():
            self._remove_triggers()
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            self._readers.create()
            captures = [self._capture(table) for table in tables]
            for capture in captures:
                capture.create()
            self._readers.enter(reader, store, [capture.relation for capture in captures])

    def resume(self, tables: Sequence[str], reader: str) -> None:  # noqa: ARG002 - the log is in the file
        self._reader = reader

    def forget(self, tables: Sequence[str], reader: str, store: str = "") -> list[str]:
        with self._transaction():
            self._remove_triggers()
            if not self._known():
                return []
            for relation in self._readers.leave(reader, store):
                self._capture(relation).drop()
            if self._readers.empty():
                self._connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
                return []
            relations = {self._capture(table).relation for table in tables}
            return sorted({store for relation in relations for store in self._readers.stores(relation)})

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        with self._transaction():
            known = None if at is None else self._checked(relations, at)
            position = self._look(relations)
            deltas = []
            for relation in relations:
                sql = f"SELECT {_columns(relation)}, 1 FROM {self._capture(relation.table).source} r"
                later = [] if known is None else [self._later(relation, known, sign=-1)]
                deltas.append(pa.concat_tables([self._fetch(sql, relation), *later]))
        return Cut(position.text, tuple(deltas))

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        with self._transaction():
            known = self._checked(relations, since)
            position = self._look(relations)
            deltas = tuple(self._later(relation, known) for relation in relations)
            return Cut(since if position.at == known.at else position.text, deltas)

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        with self._transaction():
            self._look([relation])
            rows = tuple(self._match(relation, key_set).drop_columns([WEIGHT]) for key_set in key_sets)
            return Answer(rows, self._later(relation, SourcePosition.read(vector)))

    def announce(self, tables: Sequence[str], reader: str, before: str | None, vector: str) -> None:
        position = SourcePosition.read(vector)
        with self._transaction():
            self._check(tables, position)
            self._readers.announce(reader, before, position)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        position = SourcePosition.read(vector)
        with self._transaction():
            self._check(tables, position)
            self._readers.confirm(reader, position)
            for table in tables:
                capture = self._capture(table)
                capture.prune(self._readers.least(capture.relation))

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
            self._numbers.clear()
            if isinstance(error, duckdb.Error):
                reason = str(error).splitlines()[0]
                raise SourceError(
                    f"DuckDB source {self._place}: {disk_reason(reason) or reason}; nothing was written"
                ) from error
            raise

    def _capture(self, table: str) -> DuckDbCapture:
        return DuckDbCapture(self._connection, table)

    def _known(self) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ? "
            "AND table_name = 'views'",
            [SCHEMA],
        )
        return bool(found.fetchall())

    def _remove_triggers(self) -> None:
        """What a version that recorded changes by triggers has left; this one reads none of its stores."""
        found = self._connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [_OLD])
        if not found.fetchall():
            return
        triggers = self._connection.execute(
            "SELECT schema_name, table_name, trigger_name FROM duckdb_triggers() "
            "WHERE trigger_name LIKE 'spillway!_%' ESCAPE '!'"
        ).fetchall()
        for schema, table, name in triggers:
            self._connection.execute(f"DROP TRIGGER {quoted(name)} ON {quoted(schema)}.{quoted(table)}")
        tables = self._connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND (table_name = ? OR "
            "table_name LIKE 'spillway!_changes!_%' ESCAPE '!')",
            [_OLD],
        ).fetchall()
        for (name,) in tables:
            self._connection.execute(f"DROP TABLE {quoted(name)}")

    def _checked(self, relations: Sequence[SourceTable], vector: str) -> SourcePosition:
        """The position of a vector, which must be that of the stored view; in a transaction."""
        position = SourcePosition.read(vector)
        if not self._known() or not self._readers.stands_at(self._reader, position.mark):
            raise restored(f"DuckDB source {self._place}")
        self._check(sorted({relation.table for relation in relations}), position)
        return position

    def _check(self, tables: Sequence[str], position: SourcePosition) -> None:
        for table in tables:
            capture = self._capture(table)
            incarnation = capture.incarnation()
            if incarnation is None or incarnation != position.of.get(capture.relation):
                raise recreated(f"DuckDB table {table} in {self._place}")

    def _look(self, relations: Sequence[SourceTable]) -> SourcePosition:
        captures = [self._capture(table) for table in sorted({relation.table for relation in relations})]
        for capture in captures:
            if self._shared or capture.relation not in self._numbers:
                self._numbers[capture.relation] = capture.look()
        at = {capture.relation: self._numbers[capture.relation] for capture in captures}
        of = {capture.relation: capture.incarnation() or "" for capture in captures}
        return SourcePosition(at, of, new_mark())

    def _later(self, relation: SourceTable, position: SourcePosition, *, sign: int = 1) -> pa.Table:
        capture = self._capture(relation.table)
        return self._fetch(
            f"SELECT {_columns(relation)}, {sign} * spillway_weight FROM {capture.log} r "
            f"WHERE spillway_number > {int(position.at[capture.relation])}",
            relation,
        )

    def _match(self, relation: SourceTable, key_set: KeySet) -> pa.Table:
        select, table = f"SELECT {_columns(relation)}, 1", self._capture(relation.table).source
        if not key_set.columns:
            return self._fetch(f"{select} FROM {table} r", relation)
        on = " AND ".join(f"r.{quoted(relation.columns[p].name)} = k.c{p}" for p in key_set.columns)
        if self._cooperative:
            self._connection.register("spillway_keys", key_set.keys)
            rows = self._fetch(f"{select} FROM spillway_keys k JOIN {table} r ON {on}", relation)
            self._connection.unregister("spillway_keys")
            return rows
        names = ", ".join(f"c{place}" for place in key_set.columns)
        marks = f"({', '.join('?' for _ in key_set.columns)})"
        values = list(zip(*(column.to_pylist() for column in key_set.keys.columns), strict=True))
        parts = []
        for batch in self._sub_batch.timed(values):
            sql = (
                f"{select} FROM (VALUES {', '.join([marks] * len(batch))}) k({names}) JOIN {table} r ON {on}"
            )
            parts.append(self._fetch(sql, relation, [value for row in batch for value in row]))
        return pa.concat_tables(parts)

    def _fetch(self, sql: str, relation: SourceTable, parameters: Sequence[object] = ()) -> pa.Table:
        table: pa.Table = self._connection.sql(sql, params=list(parameters)).to_arrow_table()
        schema = delta_schema(relation.columns)
        return table.rename_columns(schema.names).cast(schema)


def _columns(relation: SourceTable) -> str:
    return ", ".join(f"r.{quoted(column.name)}" for column in relation.columns)


def _type(kind: str) -> str:
    return _TYPES.get(kind, kind.lower())
