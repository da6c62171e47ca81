"""A PostgreSQL server: triggers write each change with its transaction id; a vector is a snapshot.

All of an answer is read in one REPEATABLE READ transaction, so the changes it saw beyond a vector are those
rows of the change table that it sees and for which `pg_visible_in_snapshot` does not hold. Neither the order
of ids nor of commits matters. A vector cuts whole transactions, across all tables of the server. A lost
connection is opened again and the question asked again: an answer from a later moment is as good. What a
vector contains is on the server's disk before anybody hears of the vector, though writers may commit with
`synchronous_commit = off`: a crash of the server takes back nothing that the view stands for. Rows travel as
CSV by COPY, so no row is handled in Python. Known limits: logical decoding is not used; a writer that sets
`session_replication_role = replica`, or writes to a partition instead of its table, fires no triggers, and
TRUNCATE in a REPEATABLE READ transaction records only what that transaction sees; `char(n)` and `bytea` are
not read.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql

from spillway.errors import SourceError
from spillway.maintain.delta import WEIGHT
from spillway.maintain.execute import Answer
from spillway.maintain.sources.postgres_capture import Table, change_table, install_table
from spillway.maintain.sources.postgres_copy import copied_bytes
from spillway.maintain.sources.postgres_select import (
    Select,
    all_rows,
    changes_since,
    copy_statement,
    oldest_change,
    read_copied,
    rows_with,
    rows_with_keys,
)
from spillway.maintain.sources.server import Cut, Relation
from spillway.maintain.sources.sub_batch import SubBatch
from spillway.maintain.unify import KeySet
from spillway.plan.schema import Column

_PATIENCE_SECONDS = 60.0
"""How long a server may be away in the middle of a round."""
INLINE_KEYS = 200_000
"""Keys that travel in the text of a query; more go into a temporary table."""
_TYPES = {
    "boolean": "boolean", "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float",
    "double precision": "double", "text": "string", "date": "date", "uuid": "postgresql uuid",
    "timestamp without time zone": "timestamp_ntz", "timestamp with time zone": "timestamp",
}  # fmt: skip
T = TypeVar("T")


class PostgresServer:
    """One database of a PostgreSQL server; `cooperative` allows temporary tables for the keys of a query."""

    remote = True

    def __init__(
        self,
        dsn: str,
        *,
        cooperative: bool = True,
        sub_batch: int | None = None,
        inline_keys: int = INLINE_KEYS,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._dsn = dsn
        self._cooperative = cooperative
        self._sub_batch = SubBatch(sub_batch)
        self._inline_keys = inline_keys
        self._patience_seconds = patience_seconds
        self._connection: psycopg.Connection[Any] | None = None
        self._key_tables: dict[tuple[str, tuple[str, ...]], sql.Identifier] = {}
        try:
            self._connect()
        except psycopg.Error as error:
            raise self._error(error) from error

    def columns(self, table: str) -> tuple[Column, ...]:
        found = self._repeatable(lambda connection: Table.find(connection, table))
        if found is None:
            raise SourceError(f"the PostgreSQL server has no table {table}; check table in the job file")
        return tuple(Column(name, _type(kind)) for name, kind in found.columns)

    def install(self, tables: Sequence[str], reader: str) -> None:
        def installed(connection: psycopg.Connection[Any]) -> None:
            for table in tables:
                install_table(connection, table, reader)

        self._retried(installed)

    def load(self, relations: Sequence[Relation], at: str | None = None) -> Cut:
        def loaded(connection: psycopg.Connection[Any]) -> Cut:
            vector = _durable_snapshot(connection)
            deltas = []
            for one in relations:
                selects = [all_rows(one), *([] if at is None else [changes_since(one, at, sign=-1)])]
                deltas.append(pa.concat_tables(_copied(connection, one, selects)))
            return Cut(vector, tuple(deltas))

        return self._repeatable(loaded, relations)

    def changes(self, relations: Sequence[Relation], since: str) -> Cut:
        def read(connection: psycopg.Connection[Any]) -> Cut:
            vector = _durable_snapshot(connection)
            deltas = [_copied(connection, one, [changes_since(one, since)])[0] for one in relations]
            changed = [one for one, delta in zip(relations, deltas, strict=True) if delta.num_rows]
            age = _age_seconds(connection, changed, since) if changed else None
            return Cut(vector, tuple(deltas), age)

        return self._repeatable(read)

    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer:
        def answered(connection: psycopg.Connection[Any]) -> Answer:
            later = changes_since(relation, vector)
            if self._cooperative:
                selects = [self._matches(connection, relation, one) for one in key_sets]
                *rows, changes = _copied(connection, relation, [*selects, later])
            else:
                rows = [self._composite(connection, relation, one) for one in key_sets]
                (changes,) = _copied(connection, relation, [later])
            return Answer(tuple(one.drop_columns([WEIGHT]) for one in rows), changes)

        return self._repeatable(answered, [relation])

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        def confirmed(connection: psycopg.Connection[Any]) -> None:
            connection.execute("SET LOCAL synchronous_commit = off")  # what is lost is confirmed again
            for table in tables:
                connection.execute(
                    "UPDATE spillway.readers SET vector = %s WHERE reader = %s AND relation = %s",
                    [vector, reader, Table.name_of(table)],
                )
                connection.execute(
                    sql.SQL(
                        "DELETE FROM {} c WHERE NOT EXISTS (SELECT FROM spillway.readers r WHERE r.relation "
                        "= %s AND NOT pg_visible_in_snapshot(c.spillway_xid, r.vector::pg_snapshot))"
                    ).format(change_table(table)),
                    [Table.name_of(table)],
                )

        self._retried(confirmed)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._key_tables.clear()
            self._connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                options="-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1 -c synchronous_commit=on",
            )
        return self._connection

    def _repeatable(
        self, work: Callable[[psycopg.Connection[Any]], T], relations: Sequence[Relation] = ()
    ) -> T:
        """`work` in one REPEATABLE READ transaction: one snapshot for all that it reads.

        `relations` are locked against TRUNCATE before the snapshot is taken: to an older snapshot a truncated
        table is empty, though that snapshot does not contain the change.
        """
        begin: sql.SQL | sql.Composed = sql.SQL("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if relations:
            tables = dict.fromkeys(relation.table for relation in relations)
            names = sql.SQL(", ").join(Table.identifier(table) for table in tables)
            begin = sql.SQL("{}; LOCK TABLE {} IN ACCESS SHARE MODE").format(begin, names)

        def inside(connection: psycopg.Connection[Any]) -> T:
            connection.execute(begin)
            return work(connection)

        return self._retried(inside)

    def _retried(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """`work` in a transaction; when the server goes away it is tried again until patience ends."""
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                connection = self._connect()
                with connection.transaction():
                    return work(connection)
            except psycopg.OperationalError as error:
                self.close()
                if time.monotonic() > deadline:
                    raise self._error(error) from error
                time.sleep(0.2)
            except psycopg.Error as error:
                self.close()  # what this session knows of its temporary tables may be rolled back
                raise self._error(error) from error

    def _error(self, error: psycopg.Error) -> SourceError:
        return SourceError(f"PostgreSQL server: {' '.join(str(error).split())}")

    def _matches(self, connection: psycopg.Connection[Any], relation: Relation, key_set: KeySet) -> Select:
        """The rows that have one of the keys."""
        if not key_set.columns:
            return all_rows(relation)
        columns = [relation.columns[place] for place in key_set.columns]
        if key_set.keys.num_rows <= self._inline_keys:
            return rows_with_keys(relation, columns, key_set.keys, connection.info.server_version)
        names = [column.name for column in columns]
        return rows_with(relation, columns, self._send(connection, relation, names, key_set.keys))

    def _composite(
        self, connection: psycopg.Connection[Any], relation: Relation, key_set: KeySet
    ) -> pa.Table:
        """The same, by a query for each sub-batch of keys."""
        if not key_set.columns:
            return _copied(connection, relation, [all_rows(relation)])[0]
        columns = [relation.columns[place] for place in key_set.columns]
        parts, start = list[pa.Table](), 0
        while start < key_set.keys.num_rows:
            keys = key_set.keys.slice(start, self._sub_batch.size)
            began = time.perf_counter()
            select = rows_with_keys(relation, columns, keys, connection.info.server_version)
            parts += _copied(connection, relation, [select])
            self._sub_batch.record(keys.num_rows, time.perf_counter() - began)
            start += keys.num_rows
        return pa.concat_tables(parts)

    def _send(
        self, connection: psycopg.Connection[Any], relation: Relation, names: list[str], keys: pa.Table
    ) -> sql.Composed:
        """The temporary table of a session that holds the keys of this query, as `k`."""
        known = (Table.name_of(relation.table), tuple(names))
        if known not in self._key_tables:
            table = sql.Identifier(f"spillway_keys_{len(self._key_tables)}")
            connection.execute(
                sql.SQL(
                    "CREATE TEMPORARY TABLE {} ON COMMIT DELETE ROWS AS SELECT {} FROM {} r LIMIT 0"
                ).format(
                    table, sql.SQL(", ").join(map(sql.Identifier, names)), Table.identifier(relation.table)
                )
            )
            self._key_tables[known] = table
        table = self._key_tables[known]
        buffer = io.BytesIO()
        pa_csv.write_csv(keys, buffer, pa_csv.WriteOptions(include_header=False))
        cursor = connection.cursor()
        with cursor.copy(sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(table)) as copy:
            copy.write(buffer.getvalue())
        connection.execute(sql.SQL("ANALYZE {}").format(table))
        return sql.SQL("{} k").format(table)


def _copied(
    connection: psycopg.Connection[Any], relation: Relation, selects: Sequence[Select]
) -> list[pa.Table]:
    """The signed rows of each select, all read by one statement."""
    return read_copied(copied_bytes(connection, copy_statement(relation, selects)), relation, len(selects))


def _age_seconds(
    connection: psycopg.Connection[Any], relations: Sequence[Relation], since: str
) -> float | None:
    """How long ago the oldest change of some relations that `since` does not contain was made."""
    row = connection.execute(oldest_change(relations, since)).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def _durable_snapshot(connection: psycopg.Connection[Any]) -> str:
    """The transaction's snapshot; the end of the transaction waits until all that it contains is on disk."""
    row = connection.execute(
        "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()"
    ).fetchone()
    assert row is not None
    if row[1]:  # somebody committed without waiting; our own commit waits for theirs, if it writes anything
        connection.execute("SELECT pg_logical_emit_message(true, 'spillway', '')")
    return cast("str", row[0])


def _type(kind: str) -> str:
    if kind.startswith(("character varying", "varchar")):
        return "string"
    if kind.startswith("numeric("):
        precision, scale = kind.removeprefix("numeric(").rstrip(")").split(",")
        return f"decimal({precision},{scale})"
    return _TYPES.get(kind, f"postgresql {kind}")
