"""A session with a PostgreSQL server: transactions that are tried again, and queries by keys.

A lost connection is opened again and the question asked again: an answer from a later moment is as good. Rows
travel as CSV by COPY, so no row is handled in Python.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql

from spillway.errors import SourceError
from spillway.maintain.sources.postgres.capture import Table
from spillway.maintain.sources.postgres.copy import copied_bytes
from spillway.maintain.sources.postgres.select import (
    Select,
    all_rows,
    copy_statement,
    read_copied,
    rows_with,
    rows_with_keys,
)
from spillway.maintain.sources.server import SourceTable
from spillway.maintain.sources.sub_batch import SubBatch
from spillway.maintain.unify import KeySet

PATIENCE_SECONDS = 60.0
"""How long a server may be away in the middle of a round."""
INLINE_KEYS = 200_000
"""Keys that travel in the text of a query; more go into a temporary table."""
_OPTIONS = (
    "-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1 -c synchronous_commit=on "
    "-c client_encoding=UTF8"
)
T = TypeVar("T")
Connection = psycopg.Connection[Any]


class PostgresSession:
    """One connection at a time; `cooperative` allows temporary tables for the keys of a query."""

    def __init__(
        self,
        dsn: str,
        *,
        cooperative: bool = True,
        sub_batch: int | None = None,
        inline_keys: int = INLINE_KEYS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._dsn = dsn
        self._cooperative = cooperative
        self._sub_batch = SubBatch(sub_batch)
        self._inline_keys = inline_keys
        self._patience_seconds = patience_seconds
        self._connection: Connection | None = None
        self._key_tables: dict[tuple[str, tuple[str, ...]], sql.Identifier] = {}
        try:
            self._connect()
        except psycopg.Error as error:
            raise _source_error(error) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def database(self) -> str:
        """The name of the database."""
        return self.alone(lambda connection: connection.info.dbname)

    def repeatable(self, work: Callable[[Connection], T], relations: Sequence[SourceTable] = ()) -> T:
        """`work` in one REPEATABLE READ transaction: one snapshot for all that it reads.

        `relations` are locked against TRUNCATE before the snapshot is taken: to an older snapshot a truncated
        table is empty, though that snapshot does not contain the change.
        """
        begin: sql.SQL | sql.Composed = sql.SQL("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if relations:
            tables = dict.fromkeys(relation.table for relation in relations)
            names = sql.SQL(", ").join(Table.identifier(table) for table in tables)
            begin = sql.SQL("{}; LOCK TABLE {} IN ACCESS SHARE MODE").format(begin, names)

        def inside(connection: Connection) -> T:
            connection.execute(begin)
            return work(connection)

        return self.transaction(inside)

    def transaction(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction; when the server goes away it is tried again until patience ends."""

        def inside(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self.alone(inside)

    def alone(self, work: Callable[[Connection], T]) -> T:
        """The same where every statement of `work` is a transaction of its own."""
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                return work(self._connect())
            except psycopg.OperationalError as error:
                self.close()
                if time.monotonic() > deadline:
                    raise _source_error(error) from error
                time.sleep(0.2)
            except psycopg.Error as error:
                self.close()  # what this session knows of its temporary tables may be rolled back
                raise _source_error(error) from error

    def answer(
        self,
        connection: Connection,
        relation: SourceTable,
        key_sets: Sequence[KeySet],
        more: Sequence[Select],
    ) -> list[pa.Table]:
        """The signed rows of each key set, and of `more` selects; all in the caller's transaction."""
        if self._cooperative:
            selects = [self._matches(connection, relation, key_set) for key_set in key_sets]
            return copied(connection, relation, [*selects, *more])
        rows = [self._composite(connection, relation, key_set) for key_set in key_sets]
        return [*rows, *(copied(connection, relation, more) if more else [])]

    def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._key_tables.clear()
            self._connection = psycopg.connect(self._dsn, autocommit=True, options=_OPTIONS)
        return self._connection

    def _matches(self, connection: Connection, relation: SourceTable, key_set: KeySet) -> Select:
        """The rows that have one of the keys."""
        if not key_set.columns:
            return all_rows(relation)
        columns = [relation.columns[place] for place in key_set.columns]
        if key_set.keys.num_rows <= self._inline_keys:
            return rows_with_keys(relation, columns, key_set.keys, connection.info.server_version)
        names = [column.name for column in columns]
        return rows_with(relation, columns, self._send(connection, relation, names, key_set.keys))

    def _composite(self, connection: Connection, relation: SourceTable, key_set: KeySet) -> pa.Table:
        """The same, by a query for each sub-batch of keys."""
        if not key_set.columns:
            return copied(connection, relation, [all_rows(relation)])[0]
        columns = [relation.columns[place] for place in key_set.columns]
        parts = []
        for keys in self._sub_batch.timed(key_set.keys):
            select = rows_with_keys(relation, columns, keys, connection.info.server_version)
            parts += copied(connection, relation, [select])
        return pa.concat_tables(parts)

    def _send(
        self, connection: Connection, relation: SourceTable, names: list[str], keys: pa.Table
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


def copied(connection: Connection, relation: SourceTable, selects: Sequence[Select]) -> list[pa.Table]:
    """The signed rows of each select, all read by one statement."""
    return read_copied(copied_bytes(connection, copy_statement(relation, selects)), relation, len(selects))


def _source_error(error: psycopg.Error) -> SourceError:
    return SourceError(f"PostgreSQL server: {' '.join(str(error).split())}")
