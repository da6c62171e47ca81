"""Which stored views read the changes of a PostgreSQL database: the table `spillway.views`.

A row says where the store of a reader is, by which slot its changes come (none: by triggers), the mark of the
position that it confirmed, and of the one that it announced (`server.py` says why).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from spillway.maintain.sources.postgres.capture import Table, lock_capture
from spillway.maintain.sources.postgres.session import Connection


@dataclass(frozen=True, slots=True)
class StoredView:
    """A row of the table."""

    reader: str
    slot: str | None
    marks: tuple[str | None, str | None]


def enter(connection: Connection, reader: str, store: str, slot: str | None) -> None:
    lock_capture(connection)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS spillway.views "
        "(reader text PRIMARY KEY, store text NOT NULL, slot text, mark text, announced text)"
    )
    connection.execute(
        "INSERT INTO spillway.views VALUES (%s, %s, %s) ON CONFLICT (reader) DO UPDATE SET "
        "store = excluded.store, slot = excluded.slot, mark = NULL, announced = NULL",
        [reader, store, slot],
    )


def find(connection: Connection, reader: str) -> StoredView | None:
    if not _exists(connection, "views"):
        return None
    row = connection.execute(
        "SELECT slot, mark, announced FROM spillway.views WHERE reader = %s", [reader]
    ).fetchone()
    return None if row is None else StoredView(reader, row[0], (row[1], row[2]))


def left(connection: Connection, reader: str, store: str) -> list[StoredView]:
    """Take out a reader and its parts, and others of the same store."""
    lock_capture(connection)
    if not _exists(connection, "views"):
        return []
    rows = connection.execute(
        "DELETE FROM spillway.views WHERE reader = %s OR starts_with(reader, %s) "
        "OR (store = %s AND store <> '') RETURNING reader, slot",
        [reader, f"{reader}/", store],
    ).fetchall()
    return [StoredView(name, slot, (None, None)) for name, slot in rows]


def announce(connection: Connection, reader: str, before: str | None, mark: str) -> None:
    """On disk when the transaction has ended; a standby that waits is not waited for."""
    connection.execute("SET LOCAL synchronous_commit = local")
    connection.execute(
        "UPDATE spillway.views SET mark = %s, announced = %s WHERE reader = %s", [before, mark, reader]
    )


def confirm(connection: Connection, reader: str, mark: str) -> None:
    connection.execute(
        "UPDATE spillway.views SET mark = %s, announced = NULL WHERE reader = %s", [mark, reader]
    )


def other_stores(connection: Connection, tables: Sequence[str]) -> list[str]:
    """The stores for which changes of some tables are kept; without any, the bookkeeping is removed."""
    lock_capture(connection)
    for name in ("views", "readers"):
        table, query = sql.Identifier("spillway", name), sql.SQL("SELECT FROM {} LIMIT 1")
        if _exists(connection, name) and connection.execute(query.format(table)).fetchone() is None:
            connection.execute(sql.SQL("DROP TABLE {}").format(table))
    left_over = "SELECT FROM pg_class WHERE relnamespace = 'spillway'::regnamespace LIMIT 1"
    if connection.execute(left_over).fetchone() is None:
        connection.execute("DROP SCHEMA spillway")
    names, found = [Table.name_of(table) for table in tables], list[tuple[str]]()
    if _exists(connection, "views"):
        found += connection.execute(
            "SELECT v.store FROM spillway.views v JOIN pg_publication_tables p ON p.pubname = v.slot "
            "WHERE p.schemaname || '.' || p.tablename = ANY(%s)",
            [names],
        ).fetchall()
    if _exists(connection, "views") and _exists(connection, "readers"):
        found += connection.execute(
            "SELECT v.store FROM spillway.readers r JOIN spillway.views v USING (reader) "
            "WHERE r.relation = ANY(%s)",
            [names],
        ).fetchall()
    return sorted({store or "unknown" for (store,) in found})


def _exists(connection: Connection, name: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", [f"spillway.{name}"]).fetchone() != (None,)
