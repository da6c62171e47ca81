"""Changes of PostgreSQL tables by triggers, which write each change with its transaction id.

All of an answer is read in one REPEATABLE READ transaction, so the changes it saw beyond a vector are those
rows of the change table that it sees and for which `pg_visible_in_snapshot` does not hold. Known limits: a
writer that sets `session_replication_role = replica`, or writes to a partition instead of its table, fires no
triggers, and TRUNCATE in a REPEATABLE READ transaction records only what that transaction sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pyarrow as pa
from psycopg import sql

from spillway.maintain.delta import WEIGHT
from spillway.maintain.execute import Answer
from spillway.maintain.sources.postgres.capture import Table, change_table, incarnation, install_table
from spillway.maintain.sources.postgres.select import all_rows, changes_since, oldest_change
from spillway.maintain.sources.postgres.session import Connection, PostgresSession, copied
from spillway.maintain.sources.server import Cut, SourceTable
from spillway.maintain.unify import KeySet


class TriggerFeed:
    """The changes of some tables of one database, for one reader."""

    def __init__(self, session: PostgresSession, tables: Sequence[str] = (), reader: str = "") -> None:
        self._session = session
        self._tables, self._reader = tables, reader

    def install(self) -> None:
        def installed(connection: Connection) -> None:
            for table in self._tables:
                install_table(connection, table, self._reader)

        self._session.transaction(installed)

    def incarnations(self, connection: Connection) -> dict[str, str]:
        return {Table.name_of(table): incarnation(connection, table) for table in self._tables}

    def load(self, relations: Sequence[SourceTable], at: str | None) -> Cut:
        def loaded(connection: Connection) -> Cut:
            vector = _durable_snapshot(connection)
            deltas = []
            for relation in relations:
                selects = [
                    all_rows(relation),
                    *([] if at is None else [changes_since(relation, at, sign=-1)]),
                ]
                deltas.append(pa.concat_tables(copied(connection, relation, selects)))
            return Cut(vector, tuple(deltas))

        return self._session.repeatable(loaded, relations)

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        def read(connection: Connection) -> Cut:
            vector = _durable_snapshot(connection)
            deltas = [
                copied(connection, relation, [changes_since(relation, since)])[0] for relation in relations
            ]
            changed = [relation for relation, delta in zip(relations, deltas, strict=True) if delta.num_rows]
            age = _age_seconds(connection, changed, since) if changed else None
            return Cut(vector, tuple(deltas), age)

        return self._session.repeatable(read)

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        def answered(connection: Connection) -> Answer:
            later = changes_since(relation, vector)
            *rows, changes = self._session.answer(connection, relation, key_sets, [later])
            return Answer(tuple(table.drop_columns([WEIGHT]) for table in rows), changes)

        return self._session.repeatable(answered, [relation])

    def confirm(self, vector: str, settle: Callable[[Connection], None]) -> None:
        def confirmed(connection: Connection) -> None:
            settle(connection)
            connection.execute("SET LOCAL synchronous_commit = off")  # what is lost is confirmed again
            for table in self._tables:
                connection.execute(
                    "UPDATE spillway.readers SET vector = %s WHERE reader = %s AND relation = %s",
                    [vector, self._reader, Table.name_of(table)],
                )
                connection.execute(
                    sql.SQL(
                        "DELETE FROM {} c WHERE NOT EXISTS (SELECT FROM spillway.readers r WHERE r.relation "
                        "= %s AND NOT pg_visible_in_snapshot(c.spillway_xid, r.vector::pg_snapshot))"
                    ).format(change_table(table)),
                    [Table.name_of(table)],
                )

        self._session.transaction(confirmed)


def _age_seconds(connection: Connection, relations: Sequence[SourceTable], since: str) -> float | None:
    """How long ago the oldest change of some relations that `since` does not contain was made."""
    row = connection.execute(oldest_change(relations, since)).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def _durable_snapshot(connection: Connection) -> str:
    """The transaction's snapshot; the end of the transaction waits until all that it contains is on disk."""
    row = connection.execute(
        "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()"
    ).fetchone()
    assert row is not None
    if row[1]:  # somebody committed without waiting; our own commit waits for theirs, if it writes anything
        connection.execute("SELECT pg_logical_emit_message(true, 'spillway', '')")
    return cast("str", row[0])
