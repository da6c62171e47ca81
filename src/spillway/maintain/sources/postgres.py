"""A PostgreSQL server: a vector is a snapshot; changes come from its log or from triggers.

A vector cuts whole transactions, across all tables of the server. Which changes a query saw beyond a vector
is decided by transaction ids and snapshots, never by the order of ids or of commits. What a vector contains
is on the server's disk before anybody hears of the vector, though writers may commit with
`synchronous_commit = off`: a crash of the server takes back nothing that the view stands for. The feed is
chosen when the view is loaded (`postgres_logical.py` where the server decodes its log, else
`postgres_triggers.py`) and stays. Known limit: `char(n)` and `bytea` are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spillway.errors import SourceError
from spillway.maintain.execute import Answer
from spillway.maintain.sources.postgres_capture import Table
from spillway.maintain.sources.postgres_logical import SlotFeed
from spillway.maintain.sources.postgres_session import INLINE_KEYS, PATIENCE_SECONDS, PostgresSession
from spillway.maintain.sources.postgres_slot import Slot, why_not
from spillway.maintain.sources.postgres_triggers import TriggerFeed
from spillway.maintain.sources.server import LOGICAL, TRIGGERS, Cut, Relation
from spillway.maintain.unify import KeySet
from spillway.plan.schema import Column

_TYPES = {
    "boolean": "boolean", "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float",
    "double precision": "double", "text": "string", "date": "date", "uuid": "postgresql uuid",
    "timestamp without time zone": "timestamp_ntz", "timestamp with time zone": "timestamp",
}  # fmt: skip


class Feed(Protocol):
    """Where the changes for one reader come from; the methods are those of a server."""

    def install(self) -> None: ...
    def load(self, relations: Sequence[Relation], at: str | None) -> Cut: ...
    def changes(self, relations: Sequence[Relation], since: str) -> Cut: ...
    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer: ...
    def confirm(self, vector: str) -> None: ...
    def forget(self) -> None: ...


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
        self._wanted, self._name = feed, name
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

    def install(self, tables: Sequence[str], reader: str) -> None:
        self._feed = TriggerFeed(self._session, tables, reader)
        if self._wanted != TRIGGERS:
            reason = self._session.alone(lambda connection: why_not(connection, tables))
            if reason is None:
                self._feed = SlotFeed(self._session, self._slot(tables, reader))
            elif self._wanted == LOGICAL:
                raise SourceError(f'PostgreSQL server: feed = "logical" is not possible: {reason}')
        self._feed.install()

    def resume(self, tables: Sequence[str], reader: str) -> None:
        slot = self._slot(tables, reader)
        if slot.exists():
            self._feed = SlotFeed(self._session, slot)
        else:
            self._feed = triggers = TriggerFeed(self._session, tables, reader)
            triggers.resume()

    def load(self, relations: Sequence[Relation], at: str | None = None) -> Cut:
        return self._feed.load(relations, at)

    def changes(self, relations: Sequence[Relation], since: str) -> Cut:
        return self._feed.changes(relations, since)

    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer:
        return self._feed.ask(relation, key_sets, vector)

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:  # noqa: ARG002 - its feed knows
        self._feed.confirm(vector)

    def forget(self, tables: Sequence[str], reader: str) -> None:
        SlotFeed(self._session, self._slot(tables, reader)).forget()
        TriggerFeed(self._session, tables, reader).forget()

    def close(self) -> None:
        self._session.close()

    def _slot(self, tables: Sequence[str], reader: str) -> Slot:
        return Slot(self._session, self._name, tables, reader)


def _type(kind: str) -> str:
    if kind.startswith(("character varying", "varchar")):
        return "string"
    if kind.startswith("numeric("):
        precision, scale = kind.removeprefix("numeric(").rstrip(")").split(",")
        return f"decimal({precision},{scale})"
    return _TYPES.get(kind, f"postgresql {kind}")
