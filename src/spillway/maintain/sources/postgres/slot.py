"""Changes of PostgreSQL tables by logical decoding: a publication, a slot for one reader, its messages.

The slot keeps the log from its confirmed place on and gives the transactions that committed after it, in the
order of their commits. That is not the order in which they became visible, so the slot never decides what a
snapshot contains (`postgres_logical.py` does); it is only moved to where nothing that is still needed lies
behind. TRUNCATE says nothing about rows: a trigger writes them into a table `...gone` of the publication,
and takes them out again, before they go.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import numpy as np
from psycopg import sql

from spillway.errors import IncarnationError, SourceError
from spillway.maintain.sources.postgres.capture import (
    Table,
    columns_of,
    create_trigger,
    database_identity,
    lock_capture,
)
from spillway.maintain.sources.postgres.pgoutput import DecodedChanges
from spillway.maintain.sources.postgres.session import Connection, PostgresSession

_PIECE_BITS = 26
"""Messages travel in pieces of 64 MB: a value of PostgreSQL has at most a gigabyte."""
_OLDEST = 150_000
"""The server version from which on transactions without changes of ours are left out of the messages."""


def why_not(connection: Connection, tables: Sequence[str]) -> str | None:
    """Why changes of these tables cannot be had by logical decoding; None: they can."""
    if connection.info.server_version < _OLDEST:
        return "the server is older than PostgreSQL 15"
    (level, may, free), *_ = connection.execute(
        "SELECT current_setting('wal_level'), (SELECT rolsuper OR rolreplication FROM pg_roles "
        "WHERE rolname = current_user), "
        "current_setting('max_replication_slots')::int > (SELECT count(*) FROM pg_replication_slots)"
    ).fetchall()
    if level != "logical":
        return f"the server's wal_level is {level}, not logical"
    if not may:
        return "the role has no right to replicate"
    if not free:
        return "all of the server's max_replication_slots are in use"
    for table in tables:
        found = connection.execute(
            "SELECT c.relkind = 'r' AND c.relpersistence = 'p' AND NOT EXISTS (SELECT FROM pg_inherits i "
            "WHERE c.oid IN (i.inhrelid, i.inhparent)), pg_has_role(c.relowner, 'USAGE') FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
            Table.parts(table),
        ).fetchone()
        if found is not None and not found[0]:
            return f"table {table} has parts, inherits, or is not logged"
        if found is not None and not found[1]:
            return f"the role does not own table {table}"
    return None


def gone_table(table: str) -> tuple[str, str]:
    """Schema and name of the table through which the rows pass that a TRUNCATE takes."""
    return "spillway", f"{Table.name_of(table)}.gone"


class Slot:
    """The slot of a reader at one database; `server` is the name of the server in the job."""

    def __init__(self, session: PostgresSession, server: str, tables: Sequence[str], reader: str) -> None:
        self._session = session
        self._tables = tuple(sorted(tables))
        key = repr((reader, server, session.database(), self._tables)).encode()
        self.name = f"spillway_{hashlib.sha256(key).hexdigest()[:32]}"

    def incarnations(self, connection: Connection) -> dict[str, str]:
        """A name of each table of this database with its publication; empty: not all of its changes come."""
        slot = connection.execute(
            "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = %s", [self.name]
        ).fetchone()
        if slot is None or slot[0]:
            raise IncarnationError(
                f"PostgreSQL server: the slot {self.name} or its changes are gone "
                "(max_slot_wal_keep_size); run spillway maintain with --reload to load the view again"
            )
        identity = database_identity(connection)
        found = {}
        for table in self._tables:
            row = connection.execute(
                "SELECT c.oid, p.oid, g.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "JOIN pg_publication_rel m ON m.prrelid = c.oid JOIN pg_publication p ON p.oid = m.prpubid "
                "JOIN pg_publication_rel w ON w.prpubid = p.oid JOIN pg_class g ON g.oid = w.prrelid "
                "AND g.relname = %s AND g.relnamespace = to_regnamespace('spillway') "
                "JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = 'spillway_gone' "
                "AND t.tgenabled IN ('O', 'A') "
                "WHERE p.pubname = %s AND n.nspname = %s AND c.relname = %s",
                [gone_table(table)[1], self.name, *Table.parts(table)],
            ).fetchone()
            found[Table.name_of(table)] = "" if row is None else " ".join([identity, *map(str, row)])
        return found

    def create(self) -> None:
        """Have all changes from now on.

        Afterwards all transactions have ended that might have committed before the slot began: a snapshot
        that is taken now contains whatever the slot will not give.
        """
        self._session.transaction(self._prepare)
        self._session.alone(
            lambda c: c.execute(
                "SELECT pg_create_logical_replication_slot(%s, 'pgoutput') WHERE NOT EXISTS "
                "(SELECT FROM pg_replication_slots WHERE slot_name = %s)",  # a lost connection: try again
                [self.name, self.name],
            )
        )
        ((barrier,),) = self._numbers("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        while self._numbers("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")[0][0] < barrier:
            time.sleep(0.02)

    def peek(self, until: str) -> DecodedChanges:
        """All transactions that the log has up to a place and the reader has not confirmed."""
        pieces = self._session.alone(
            lambda c: c.execute(
                "SELECT string_agg(data, '' ORDER BY n), string_agg(int4send(length(data)), '' ORDER BY n) "
                f"FROM (SELECT data, n, sum(length(data)) OVER (ORDER BY n) >> {_PIECE_BITS} AS piece FROM "
                "pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, NULL, 'proto_version', '1', "
                "'publication_names', %s) WITH ORDINALITY m(lsn, xid, data, n)) t "
                "GROUP BY piece ORDER BY piece",
                [self.name, until, self.name],
                binary=True,
            ).fetchall()
        )
        lengths = np.frombuffer(b"".join(length for _, length in pieces), ">i4").astype(np.int64)
        return DecodedChanges(b"".join(data for data, _ in pieces), lengths)

    def advance(self, until: str) -> None:
        """The reader needs no transaction whose commit is before this place."""
        self._session.alone(
            lambda c: c.execute(
                "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
                "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn",
                [until, self.name, until],
            )
        )

    def _prepare(self, connection: Connection) -> None:
        lock_capture(connection)
        names = []
        for table in self._tables:
            found = Table.find(connection, table)
            if found is None:
                raise SourceError(f"the PostgreSQL server has no table {table}; check table in the job file")
            self._prepare_table(connection, found)
            names += [Table.identifier(table), sql.Identifier(*gone_table(table))]
        publication = sql.Identifier(self.name)
        connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(publication))
        connection.execute(
            sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish = 'insert, update, delete')").format(
                publication, sql.SQL(", ").join(names)
            )
        )

    def _prepare_table(self, connection: Connection, table: Table) -> None:
        """Whole rows in the log, and those that a TRUNCATE takes."""
        source = sql.Identifier(table.schema, table.name)
        full = connection.execute(
            "SELECT relreplident = 'f' FROM pg_class WHERE oid = %s::text::regclass",
            [source.as_string(connection)],
        ).fetchone()
        if full is None or not full[0]:
            connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(source))
        name = f"{table.schema}.{table.name}"
        gone = sql.Identifier(*gone_table(name))
        known = connection.execute(
            "SELECT FROM pg_trigger WHERE tgname = 'spillway_gone' AND tgrelid = %s::text::regclass",
            [source.as_string(connection)],
        ).fetchone()
        if known is not None and columns_of(connection, *gone_table(name))[:-1] == table.columns:
            return
        drop_gone(connection, gone_table(name)[1])  # of a table that was dropped, or is altered
        columns = sql.SQL(", ").join(sql.Identifier(column) for column, _ in table.columns)
        connection.execute(
            sql.SQL("CREATE TABLE {} AS SELECT {} FROM {} LIMIT 0").format(gone, columns, source)
        )
        connection.execute(
            sql.SQL(
                "ALTER TABLE {} ADD spillway_number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
            ).format(gone)
        )
        body = sql.SQL(
            "INSERT INTO {gone} ({columns}) SELECT {columns} FROM {source}; DELETE FROM {gone};"
        ).format(gone=gone, columns=columns, source=source)
        create_trigger(connection, source, f"{name}.gone", "gone", "BEFORE TRUNCATE", "", body)

    def _numbers(self, text: str) -> list[tuple[int, ...]]:
        return self._session.alone(lambda c: c.execute(text).fetchall())


def drop_slot(session: PostgresSession, name: str) -> None:
    """Give up a slot with its publication; tables keep their REPLICA IDENTITY FULL."""
    session.alone(
        lambda c: c.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
            [name],
        )
    )

    def cleared(connection: Connection) -> None:
        lock_capture(connection)
        gone = connection.execute(
            "SELECT tablename FROM pg_publication_tables WHERE pubname = %s AND schemaname = 'spillway'",
            [name],
        ).fetchall()
        connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))
        for (table,) in gone:
            used = connection.execute(
                "SELECT FROM pg_publication_tables WHERE schemaname = 'spillway' AND tablename = %s LIMIT 1",
                [table],
            ).fetchone()
            if used is None:
                drop_gone(connection, table)

    session.transaction(cleared)


def drop_gone(connection: Connection, name: str) -> None:
    """Remove a table of rows that a TRUNCATE takes, and the trigger that fills it."""
    gone = sql.Identifier("spillway", name)
    connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(gone))
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(gone))
