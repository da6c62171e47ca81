"""A PostgreSQL server: a vector is a snapshot; changes come from its log or from triggers.

A vector cuts whole transactions, across all tables of the server. Which changes a query saw beyond a vector
is decided by transaction ids and snapshots, never by the order of ids or of commits. What a vector contains
is on the server's disk before anybody hears of the vector, though writers may commit with
`synchronous_commit = off`: a crash of the server takes back nothing that the view stands for. The feed is
chosen when the view is loaded (`postgres_logical.py` where the server decodes its log, else
`postgres_triggers.py`) and stays. Known limit: `char(n)` and `bytea` are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from spillway.errors import SourceError
from spillway.maintain.execute import Answer
from spillway.maintain.sources.position import SourcePosition, new_mark, recreated, restored
from spillway.maintain.sources.postgres import views as postgres_views
from spillway.maintain.sources.postgres.capture import Table, forget_table, relations_of
from spillway.maintain.sources.postgres.logical import SlotFeed
from spillway.maintain.sources.postgres.session import (
    INLINE_KEYS,
    PATIENCE_SECONDS,
    Connection,
    PostgresSession,
)
from spillway.maintain.sources.postgres.slot import Slot, drop_slot, why_not
from spillway.maintain.sources.postgres.triggers import TriggerFeed
from spillway.maintain.sources.postgres.views import StoredView
from spillway.maintain.sources.server import LOGICAL, TRIGGERS, Cut, SourceTable
from spillway.maintain.unify import KeySet
from spillway.model import Column

_TYPES = {
    "boolean": "boolean", "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float",
    "double precision": "double", "text": "string", "date": "date", "uuid": "postgresql uuid",
    "timestamp without time zone": "timestamp_ntz", "timestamp with time zone": "timestamp",
}  # fmt: skip


class Feed(Protocol):
    """Where the changes for one reader come from; the methods are those of a server, for snapshots.

    `incarnations` names each table with what records its changes; empty: not all of them are recorded.
    `confirm` does what `settle` does no later than it removes changes.
    """

    def install(self) -> None: ...
    def incarnations(self, connection: Connection) -> dict[str, str]: ...
    def load(self, relations: Sequence[SourceTable], at: str | None) -> Cut: ...
    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut: ...
    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer: ...
    def confirm(self, vector: str, settle: Callable[[Connection], None]) -> None: ...


class PostgresServer:
    """One database of a PostgreSQL server; `cooperative` allows temporary tables for the keys of a query.

    `feed`: None takes logical decoding where it is available. `name` is that of the server in the job: each
    has a slot of its own, though two may be the same database.
    """

    remote = True

    def __init__(
        self,
        dsn: str,
        *,
        cooperative: bool = True,
        sub_batch: int | None = None,
        inline_keys: int = INLINE_KEYS,
        patience_seconds: float = PATIENCE_SECONDS,
        feed: str | None = None,
        name: str = "",
    ) -> None:
        self._session = PostgresSession(
            dsn,
            cooperative=cooperative,
            sub_batch=sub_batch,
            inline_keys=inline_keys,
            patience_seconds=patience_seconds,
        )
        self._wanted, self._name, self._reader = feed, name, ""
        self._feed: Feed = TriggerFeed(self._session)

    @property
    def feed(self) -> str:
        """Where changes come from."""
        return LOGICAL if isinstance(self._feed, SlotFeed) else TRIGGERS

    def columns(self, table: str) -> tuple[Column, ...]:
        found = self._session.repeatable(lambda connection: Table.find(connection, table))
        if found is None:
            raise SourceError(f"the PostgreSQL server has no table {table}; check table in the job file")
        return tuple(Column(name, _type(kind)) for name, kind in found.columns)

    def install(self, tables: Sequence[str], reader: str, store: str = "") -> None:
        slot: Slot | None = None
        if self._wanted != TRIGGERS:
            reason = self._session.alone(lambda connection: why_not(connection, tables))
            if reason is None:
                slot = self._slot(tables, reader)
            elif self._wanted == LOGICAL:
                raise SourceError(f'PostgreSQL server: feed = "logical" is not possible: {reason}')
        name = None if slot is None else slot.name
        self._session.transaction(lambda connection: postgres_views.enter(connection, reader, store, name))
        self._follow(tables, reader, slot)
        self._feed.install()

    def resume(self, tables: Sequence[str], reader: str) -> None:
        found = self._session.transaction(lambda connection: postgres_views.find(connection, reader))
        by_log = found is not None and found.slot is not None
        self._follow(tables, reader, self._slot(tables, reader) if by_log else None)

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        if at is not None:
            known = self._checked(at)
            return Cut(at, self._feed.load(relations, known.at).deltas)
        tables = self._session.transaction(self._feed.incarnations)
        cut = self._feed.load(relations, None)
        return Cut(SourcePosition(cut.vector, tables, new_mark()).text, cut.deltas)

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        known = self._checked(since)
        cut = self._feed.changes(relations, known.at)
        if not any(delta.num_rows for delta in cut.deltas):
            return Cut(since, cut.deltas)
        return Cut(SourcePosition(cut.vector, known.of, new_mark()).text, cut.deltas, cut.age_seconds)

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        return self._feed.ask(relation, key_sets, SourcePosition.read(vector).at)

    def announce(self, tables: Sequence[str], reader: str, before: str | None, vector: str) -> None:  # noqa: ARG002
        old, new = None if before is None else SourcePosition.read(before), SourcePosition.read(vector)

        def announced(connection: Connection) -> None:
            self._check(connection, new.of, None if old is None else old.mark)
            postgres_views.announce(connection, reader, None if old is None else old.mark, new.mark)

        self._session.transaction(announced)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:  # noqa: ARG002 - its feed knows
        position = SourcePosition.read(vector)
        self._feed.confirm(
            position.at, lambda connection: postgres_views.confirm(connection, reader, position.mark)
        )

    def forget(self, tables: Sequence[str], reader: str, store: str = "") -> list[str]:
        found = self._session.transaction(lambda connection: postgres_views.left(connection, reader, store))
        old = StoredView(reader, self._slot(tables, reader).name, (None, None))  # of an older version
        for view in [*found, old]:
            if view.slot is not None:
                drop_slot(self._session, view.slot)
            self._session.transaction(partial(_forget_all, view.reader))
        return self._session.transaction(lambda connection: postgres_views.other_stores(connection, tables))

    def close(self) -> None:
        self._session.close()

    def _slot(self, tables: Sequence[str], reader: str) -> Slot:
        return Slot(self._session, self._name, tables, reader)

    def _follow(self, tables: Sequence[str], reader: str, slot: Slot | None) -> None:
        self._reader = reader
        if slot is None:
            self._feed = TriggerFeed(self._session, tables, reader)
        else:
            self._feed = SlotFeed(self._session, slot)

    def _checked(self, vector: str) -> SourcePosition:
        """The position of a vector, which must be that of the stored view."""
        position = SourcePosition.read(vector)
        self._session.transaction(lambda connection: self._check(connection, position.of, position.mark))
        return position

    def _check(self, connection: Connection, tables: Mapping[str, str], mark: str | None) -> None:
        for table, name in self._feed.incarnations(connection).items():
            if not name or name != tables.get(table):
                raise recreated(f"PostgreSQL table {table}")
        found = postgres_views.find(connection, self._reader)
        if found is None or (mark is not None and mark not in found.marks):
            raise restored("the PostgreSQL database")


def _forget_all(reader: str, connection: Connection) -> None:
    for relation in relations_of(connection, reader):
        forget_table(connection, relation, reader)


def _type(kind: str) -> str:
    if kind.startswith(("character varying", "varchar")):
        return "string"
    if kind.startswith("numeric("):
        precision, scale = kind.removeprefix("numeric(").rstrip(")").split(",")
        return f"decimal({precision},{scale})"
    return _TYPES.get(kind, f"postgresql {kind}")
