"""Change capture in PostgreSQL: the schema `spillway` with one change table per table, filled by triggers.

Statement triggers with transition tables write (transaction id, weight, time, row). Creating a trigger waits
for all running writers of the table, so from then on no change is missed. `spillway.readers` lists which view
still needs which changes; a new reader is entered with a vector that contains nothing before it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from spillway.errors import SourceError

NOTHING = "1:1:"
"""A snapshot that contains no transaction."""
_LONGEST = 63
EVENTS = ("insert", "delete", "update", "truncate")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the server with the names and types of its columns, as PostgreSQL writes them."""

    schema: str
    name: str
    columns: tuple[tuple[str, str], ...]

    @staticmethod
    def parts(table: str) -> tuple[str, str]:
        """Schema and name of `orders` or `sales.orders`, spelled as in the catalog."""
        schema, _, name = table.rpartition(".")
        return schema or "public", name

    @staticmethod
    def name_of(table: str) -> str:
        return ".".join(Table.parts(table))

    @staticmethod
    def identifier(table: str) -> sql.Identifier:
        return sql.Identifier(*Table.parts(table))

    @staticmethod
    def find(connection: psycopg.Connection[Any], table: str) -> Table | None:
        schema, name = Table.parts(table)
        columns = columns_of(connection, schema, name)
        return Table(schema, name, columns) if columns else None


def change_table(table: str) -> sql.Identifier:
    """The change table of a table."""
    return sql.Identifier("spillway", Table.name_of(table))


def install_table(connection: psycopg.Connection[Any], table: str, reader: str) -> None:
    """Record changes of `table` from now on, for `reader`; what is there already is left as it is."""
    found = Table.find(connection, table)
    if found is None:
        raise SourceError(f"the PostgreSQL server has no table {table}; check table in the job file")
    name = Table.name_of(table)
    if len(f"{name}.truncate".encode()) > _LONGEST:
        raise SourceError(f"the name of table {name} is too long to record its changes; rename it")
    lock_capture(connection)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS spillway.readers "
        "(reader text, relation text, vector text NOT NULL, PRIMARY KEY (reader, relation))"
    )
    recorded = columns_of(connection, "spillway", name)
    if not incarnation(connection, table) or recorded[3:] != found.columns:
        _drop(connection, table)  # of a table that was dropped or altered; other readers will notice
        _create(connection, found)
    connection.execute(
        "INSERT INTO spillway.readers VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", [reader, name, NOTHING]
    )


def incarnation(connection: psycopg.Connection[Any], table: str) -> str:
    """A name of this table of this database with its change table; empty: not all changes are recorded."""
    found = connection.execute(
        "SELECT c.oid, k.oid, (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = c.oid "
        "AND t.tgname = ANY(%s) AND t.tgenabled IN ('O', 'A')) FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace JOIN pg_class k ON k.relname = %s AND k.relnamespace = "
        "to_regnamespace('spillway') WHERE n.nspname = %s AND c.relname = %s",
        [[f"spillway_{event}" for event in EVENTS], Table.name_of(table), *Table.parts(table)],
    ).fetchone()
    if found is None or found[2] != len(EVENTS):
        return ""
    return f"{database_identity(connection)} {found[0]} {found[1]}"


def database_identity(connection: psycopg.Connection[Any]) -> str:
    """What tells this database from others, and from one that a dump was restored into."""
    row = connection.execute(
        "SELECT (SELECT system_identifier::text FROM pg_control_system()), "
        "(SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    assert row is not None
    return f"{row[0]} {row[1]}"


def forget_table(connection: psycopg.Connection[Any], name: str, reader: str) -> None:
    """`reader` needs no changes of a table, by its full name; without another reader none are recorded."""
    lock_capture(connection)
    connection.execute("DELETE FROM spillway.readers WHERE reader = %s AND relation = %s", [reader, name])
    others = "SELECT FROM spillway.readers WHERE relation = %s LIMIT 1"
    if connection.execute(others, [name]).fetchone() is None:
        _drop(connection, name)


def relations_of(connection: psycopg.Connection[Any], reader: str) -> list[str]:
    """The tables whose changes triggers record for a reader."""
    if connection.execute("SELECT to_regclass('spillway.readers')").fetchone() == (None,):
        return []
    rows = connection.execute(
        "SELECT relation FROM spillway.readers WHERE reader = %s ORDER BY 1", [reader]
    ).fetchall()
    return [relation for (relation,) in rows]


def _drop(connection: psycopg.Connection[Any], table: str) -> None:
    for event in EVENTS:
        function = sql.Identifier("spillway", f"{Table.name_of(table)}.{event}")
        connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function))
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(change_table(table)))


def lock_capture(connection: psycopg.Connection[Any]) -> None:
    """One at a time may change what is recorded in a database."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('spillway'))")
    connection.execute("CREATE SCHEMA IF NOT EXISTS spillway")


def columns_of(connection: psycopg.Connection[Any], schema: str, name: str) -> tuple[tuple[str, str], ...]:
    rows = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
        "JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        [schema, name],
    ).fetchall()
    return tuple((column, kind) for column, kind in rows)


def _create(connection: psycopg.Connection[Any], table: Table) -> None:
    name = f"{table.schema}.{table.name}"
    changes = change_table(name)
    columns = sql.SQL(", ").join(sql.Identifier(column) for column, _ in table.columns)
    source = sql.Identifier(table.schema, table.name)
    connection.execute(
        sql.SQL(
            "CREATE TABLE {changes} AS SELECT pg_current_xact_id() AS spillway_xid, "
            "1::int AS spillway_weight, clock_timestamp() AS spillway_at, {columns} FROM {source} LIMIT 0"
        ).format(changes=changes, columns=columns, source=source)
    )
    connection.execute(sql.SQL("CREATE INDEX ON {} (spillway_xid)").format(changes))
    insert = sql.SQL("INSERT INTO {} SELECT pg_current_xact_id(), {}, clock_timestamp(), {} FROM {};")
    old = insert.format(changes, sql.SQL("-1"), columns, sql.Identifier("spillway_old"))
    new = insert.format(changes, sql.SQL("1"), columns, sql.Identifier("spillway_new"))
    gone = insert.format(changes, sql.SQL("-1"), columns, source)
    for event, body, when, images in (
        ("insert", new, "AFTER", "REFERENCING NEW TABLE AS spillway_new"),
        ("delete", old, "AFTER", "REFERENCING OLD TABLE AS spillway_old"),
        ("update", old + new, "AFTER", "REFERENCING OLD TABLE AS spillway_old NEW TABLE AS spillway_new"),
        ("truncate", gone, "BEFORE", ""),
    ):
        create_trigger(connection, source, f"{name}.{event}", event, f"{when} {event.upper()}", images, body)


def create_trigger(
    connection: psycopg.Connection[Any],
    source: sql.Identifier,
    function_name: str,
    name: str,
    when: str,
    images: str,
    body: sql.Composed,
) -> None:
    """A statement trigger `spillway_NAME` of a table, and its function in the schema `spillway`."""
    function = sql.Identifier("spillway", function_name)
    # The function runs as its owner, so that writers need no rights on the change table.
    text = sql.SQL("BEGIN {} RETURN NULL; END").format(body).as_string(connection)
    connection.execute(
        sql.SQL(
            "CREATE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            "SET search_path = pg_catalog, pg_temp AS {}"
        ).format(function, sql.Literal(text))
    )
    connection.execute(
        sql.SQL("CREATE TRIGGER {} {} ON {} {} FOR EACH STATEMENT EXECUTE FUNCTION {}()").format(
            sql.Identifier(f"spillway_{name}"), sql.SQL(when), source, sql.SQL(images), function
        )
    )
