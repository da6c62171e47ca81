"""Changes of PostgreSQL tables from its log, by the slot of one reader (`postgres_slot.py`).

A vector is a snapshot, as with triggers. Whatever is read is read in one REPEATABLE READ transaction, which
also says its snapshot and, after that, how far the log goes: a transaction's commit is in the log before
any snapshot contains it. Then the slot is read up to there, and of its transactions those count that the
snapshot contains and the vector does not. So the order of commits in the log, which is not the order in
which they become visible, decides nothing. The slot moves when the view has been committed, to the first
commit that the committed vector does not contain; what is read twice is in the vector and is left out. Known
limits: every look at the slot decodes the log from its confirmed place; a writer in REPEATABLE READ that
truncates a table records only the rows that it sees; tables with partitions are left to triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spillway.maintain.algebra import negated
from spillway.maintain.delta import WEIGHT, delta_schema
from spillway.maintain.execute import Answer
from spillway.maintain.sources.postgres.capture import Table
from spillway.maintain.sources.postgres.pgoutput import DecodedChanges
from spillway.maintain.sources.postgres.select import all_rows
from spillway.maintain.sources.postgres.session import Connection, PostgresSession, copied
from spillway.maintain.sources.postgres.slot import Slot, gone_table
from spillway.maintain.sources.postgres.snapshot import Snapshot
from spillway.maintain.sources.server import Cut, SourceTable
from spillway.maintain.unify import KeySet

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class _Moment:
    """What a transaction saw, and a place in the log behind all of it."""

    snapshot: str
    log_end: str
    now_seconds: float


@dataclass(frozen=True, slots=True)
class _Later:
    """Changes between two vectors: what was decoded, and which of its transactions count."""

    decoded: DecodedChanges
    kept: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    """Transactions that the later vector does not contain either."""

    def of(self, relation: SourceTable) -> pa.Table:
        deltas = [
            self.decoded.changed(Table.parts(relation.table), relation.columns, self.kept),
            negated(self.decoded.inserted(gone_table(relation.table), relation.columns, self.kept)),
        ]
        return pa.concat_tables(deltas)


class SlotFeed:
    """The changes of one database for one reader."""

    def __init__(self, session: PostgresSession, slot: Slot) -> None:
        self._session = session
        self._slot = slot
        self._free: tuple[Snapshot, str] | None = None
        """A vector, and the place before which the log has nothing that it does not contain."""

    def install(self) -> None:
        self._slot.create()

    def load(self, relations: Sequence[SourceTable], at: str | None) -> Cut:
        def loaded(connection: Connection) -> tuple[list[pa.Table], _Moment]:
            rows = [copied(connection, relation, [all_rows(relation)])[0] for relation in relations]
            return rows, _moment(connection)

        rows, moment = self._session.repeatable(loaded, relations)
        self._flush(moment)
        if at is not None:
            later = self._since(at, moment)
            if later is not None:
                rows = [
                    pa.concat_tables([table, negated(later.of(relation))])
                    for table, relation in zip(rows, relations, strict=True)
                ]
        return Cut(moment.snapshot, tuple(rows))

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        moment = self._session.repeatable(_moment)
        later = self._since(since, moment)
        if later is None:
            return Cut(
                moment.snapshot, tuple(delta_schema(relation.columns).empty_table() for relation in relations)
            )
        unseen = later.decoded.transactions.commits[later.unseen]
        free = _place(int(unseen[0])) if len(unseen) else moment.log_end
        if not later.kept.any():  # all before that place is in `since`, which is committed
            self._slot.advance(free)
        else:
            self._free = (Snapshot.read(moment.snapshot), free)
        times = later.decoded.transactions.times[later.kept]
        age = moment.now_seconds - (_EPOCH + int(times.min()) / 1e6) if len(times) else None
        return Cut(moment.snapshot, tuple(later.of(relation) for relation in relations), age)

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        def answered(connection: Connection) -> tuple[list[pa.Table], _Moment]:
            return self._session.answer(connection, relation, key_sets, []), _moment(connection)

        found, moment = self._session.repeatable(answered, [relation])
        later = self._since(vector, moment)
        changes = delta_schema(relation.columns).empty_table() if later is None else later.of(relation)
        return Answer(tuple(table.drop_columns([WEIGHT]) for table in found), changes)

    def incarnations(self, connection: Connection) -> dict[str, str]:
        return self._slot.incarnations(connection)

    def confirm(self, vector: str, settle: Callable[[Connection], None]) -> None:
        def settled(connection: Connection) -> None:
            connection.execute("SET LOCAL synchronous_commit = local")
            settle(connection)

        self._session.transaction(settled)  # before the slot moves: an older view may not go on then
        if self._free is not None and Snapshot.read(vector).contains(self._free[0]):
            self._slot.advance(self._free[1])
            self._free = None

    def _since(self, vector: str, moment: _Moment) -> _Later | None:
        """The changes that a moment saw and a vector does not contain; None: surely none."""
        seen, known = Snapshot.read(moment.snapshot), Snapshot.read(vector)
        if known.contains(seen):
            return None
        self._flush(moment)
        decoded = self._slot.peek(moment.log_end)
        transactions = seen.widened(decoded.transactions.ids)
        unseen = ~seen.sees(transactions)
        return _Later(decoded, ~unseen & ~known.sees(transactions), unseen)

    def _flush(self, moment: _Moment) -> None:
        """Have the log on disk as far as a moment goes: the rest is not decoded, and a crash loses it."""

        def flushed(connection: Connection) -> None:
            found = connection.execute(
                "SELECT pg_current_wal_flush_lsn() < %s::pg_lsn", [moment.log_end]
            ).fetchone()
            if found is not None and found[0]:
                connection.execute("SET LOCAL synchronous_commit = local")
                connection.execute("SELECT pg_logical_emit_message(true, 'spillway', '')")

        self._session.transaction(flushed)


def _moment(connection: Connection) -> _Moment:
    """Of a REPEATABLE READ transaction; the place in the log is read after its snapshot was taken."""
    row = connection.execute(
        "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, "
        "extract(epoch FROM clock_timestamp())::float8"
    ).fetchone()
    assert row is not None
    return _Moment(*row)


def _place(number: int) -> str:
    """A place in the log as PostgreSQL writes it."""
    return f"{number >> 32:X}/{number & 0xFFFF_FFFF:X}"
