"""A PostgreSQL server: triggers write each change with its transaction id; a vector is a snapshot.

All of an answer is read in one REPEATABLE READ transaction, so the changes it saw beyond a vector are those
rows of the change table that it sees and for which `pg_visible_in_snapshot` does not hold. Neither the order
of ids nor of commits matters. A vector cuts whole transactions, across all tables of the server. A lost
connection is opened again and the question asked again: an answer from a later moment is as good. Rows travel
as CSV by COPY, so no row is handled in Python. Known limits: logical decoding is not used; a writer that
sets `session_replication_role = replica` fires no triggers; `char(n)` and `bytea` are not read.
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
from spillway.maintain.delta import WEIGHT, column_names, delta_schema
from spillway.maintain.execute import Answer
from spillway.maintain.sources.postgres_capture import Table, change_table, install_table
from spillway.maintain.sources.server import SUB_BATCH, Cut, Relation
from spillway.maintain.unify import KeySet
from spillway.plan.schema import Column

_PATIENCE_SECONDS = 60.0
"""How long a server may be away in the middle of a round."""
_TYPES = {
    "boolean": "boolean", "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float",
    "double precision": "double", "text": "string", "date": "date", "uuid": "postgresql uuid",
    "timestamp without time zone": "timestamp_ntz", "timestamp with time zone": "timestamp",
}  # fmt: skip
T = TypeVar("T")


class PostgresServer:
    """One database of a PostgreSQL server; `cooperative` allows temporary tables for the keys of a query."""

    def __init__(
        self,
        dsn: str,
        *,
        cooperative: bool = True,
        sub_batch: int = SUB_BATCH,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._dsn = dsn
        self._cooperative = cooperative
        self._sub_batch = sub_batch
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
            vector = _snapshot(connection)
            deltas = []
            for relation in relations:
                rows = self._copy(connection, relation, sql.SQL("1"), _from_table(relation), sql.SQL("true"))
                later = [] if at is None else [self._later(connection, relation, at, sign=-1)]
                deltas.append(pa.concat_tables([rows, *later]))
            return Cut(vector, tuple(deltas))

        return self._repeatable(loaded)

    def changes(self, relations: Sequence[Relation], since: str) -> Cut:
        def read(connection: psycopg.Connection[Any]) -> Cut:
            vector = _snapshot(connection)
            return Cut(vector, tuple(self._later(connection, relation, since) for relation in relations))

        return self._repeatable(read)

    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer:
        def answered(connection: psycopg.Connection[Any]) -> Answer:
            rows = tuple(self._match(connection, relation, one).drop_columns([WEIGHT]) for one in key_sets)
            return Answer(rows, self._later(connection, relation, vector))

        return self._repeatable(answered)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        def confirmed(connection: psycopg.Connection[Any]) -> None:
            for table in tables:
                connection.execute(
                    "UPDATE spillway.readers SET vector = %s WHERE reader = %s AND relation = %s",
                    [vector, reader, Table.name_of(table)],
                )
                connection.execute(
                    sql.SQL(
                        "DELETE FROM {} c WHERE NOT EXISTS (SELECT FROM spillway.readers r WHERE "
                        "r.relation = %s AND NOT pg_visible_in_snapshot(c.xid, r.vector::pg_snapshot))"
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
                self._dsn, autocommit=True, options="-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1"
            )
        return self._connection

    def _repeatable(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """`work` in one REPEATABLE READ transaction: one snapshot for all that it reads."""

        def inside(connection: psycopg.Connection[Any]) -> T:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
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

    def _later(
        self, connection: psycopg.Connection[Any], relation: Relation, vector: str, *, sign: int = 1
    ) -> pa.Table:
        """Changes that this transaction sees and `vector` does not contain.

        Transactions below the snapshot's xmin are in it, so the index finds the few rows to look at.
        """
        condition = sql.SQL(
            "r.xid >= pg_snapshot_xmin({vector}::pg_snapshot) "
            "AND NOT pg_visible_in_snapshot(r.xid, {vector}::pg_snapshot)"
        ).format(vector=sql.Literal(vector))
        weight = sql.SQL("r.weight * {}").format(sql.Literal(sign))
        source = sql.SQL("{} r").format(change_table(relation.table))
        return self._copy(connection, relation, weight, source, condition)

    def _match(self, connection: psycopg.Connection[Any], relation: Relation, key_set: KeySet) -> pa.Table:
        everything = sql.SQL("true")
        if not key_set.columns:
            return self._copy(connection, relation, sql.SQL("1"), _from_table(relation), everything)
        names = [relation.columns[place].name for place in key_set.columns]
        on = sql.SQL(" AND ").join(
            sql.SQL("r.{column} = k.{column}").format(column=sql.Identifier(name)) for name in names
        )
        if self._cooperative:
            keys = self._send(connection, relation, names, key_set.keys)
            source = sql.SQL("{} k JOIN {} ON {}").format(keys, _from_table(relation), on)
            return self._copy(connection, relation, sql.SQL("1"), source, everything)
        parts = []
        for start in range(0, key_set.keys.num_rows, self._sub_batch):
            batch = key_set.keys.slice(start, self._sub_batch)
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            values = sql.SQL(", ").join(
                sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, row))) for row in rows
            )
            source = sql.SQL("(VALUES {}) k({}) JOIN {} ON {}").format(
                values, sql.SQL(", ").join(map(sql.Identifier, names)), _from_table(relation), on
            )
            parts.append(self._copy(connection, relation, sql.SQL("1"), source, everything))
        return pa.concat_tables(parts)

    def _send(
        self, connection: psycopg.Connection[Any], relation: Relation, names: list[str], keys: pa.Table
    ) -> sql.Identifier:
        """The temporary table of a session that holds the keys of this query."""
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
        return table

    def _copy(
        self,
        connection: psycopg.Connection[Any],
        relation: Relation,
        weight: sql.Composable,
        source: sql.Composable,
        where: sql.Composable,
    ) -> pa.Table:
        """Columns of `relation` and a weight, selected on the server and read as CSV."""
        columns = sql.SQL(", ").join(
            sql.SQL("r.{} AT TIME ZONE 'UTC'" if column.type == "timestamp" else "r.{}").format(
                sql.Identifier(column.name)
            )
            for column in relation.columns
        )
        query = sql.SQL("COPY (SELECT {}, {} FROM {} WHERE {}) TO STDOUT (FORMAT csv)").format(
            columns, weight, source, where
        )
        with connection.cursor().copy(query) as copy:
            data = b"".join(copy)
        return _read_csv(data, relation)


def _snapshot(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    return cast("str", row[0])


def _from_table(relation: Relation) -> sql.Composed:
    return sql.SQL("{} r").format(Table.identifier(relation.table))


def _read_csv(data: bytes, relation: Relation) -> pa.Table:
    schema = delta_schema(relation.columns)
    if not data:
        return schema.empty_table()
    plain = {
        field.name: pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type
        for field in schema
    }
    table = pa_csv.read_csv(
        io.BytesIO(data),
        read_options=pa_csv.ReadOptions(column_names=[*column_names(relation.columns), WEIGHT]),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=plain,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    return table.cast(schema)


def _type(kind: str) -> str:
    if kind.startswith(("character varying", "varchar")):
        return "string"
    if kind.startswith("numeric("):
        precision, scale = kind.removeprefix("numeric(").rstrip(")").split(",")
        return f"decimal({precision},{scale})"
    return _TYPES.get(kind, f"postgresql {kind}")
