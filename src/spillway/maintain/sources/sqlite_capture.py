"""The triggers that record the changes of an SQLite table, and how to tell that they record all of them.

Triggers after each event write the row into a change table. That is not enough: REPLACE deletes the rows that
are in the way of a new one, and SQLite fires no delete triggers for them unless `recursive_triggers` is on.
So triggers before each event put the rows with an equal key, for each unique key, into a table of replaced
rows; those that are gone after the event are recorded as deleted. A row that is deleted or changed in a
way that does fire triggers is taken out of that table.

This needs our triggers to run before the application's. SQLite runs the latest trigger first, so ours must be
the latest ones. A capture is valid only if its triggers are exactly those that would be created now: not if
the table was recreated, or got a column, a unique key or another trigger. Known limits: temporary triggers
of the application, which run before ours, must not write to the table; unique keys over expressions are
refused.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

from spillway.errors import SourceError
from spillway.maintain.identifier import quoted

NOW = "(julianday('now') - 2440587.5) * 86400.0"
"""Seconds since 1970."""
_TOKEN = re.compile(r"/\* (\w{32}) \*/")
_KNOWN_COLLATIONS = ("BINARY", "NOCASE", "RTRIM")
_ROWID, _KEY = "spillway_rowid", "spillway_key"


@dataclass(frozen=True, slots=True)
class _Key:
    """A unique key: its columns with their collations; no columns: the row's number."""

    number: int
    columns: tuple[tuple[str, str], ...]


class SqliteCapture:
    """The capture of one table of a connection; made for one transaction, the caller's."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        self._source = quoted(table)
        self._changes_name = f"spillway_changes_{table.lower()}"
        self._replaced = quoted(f"spillway_replaced_{table.lower()}")
        self._triggers = [
            f"spillway_{event}_{table.lower()}"
            for event in ("replaced_insert", "replaced_update", "insert", "update", "delete")
        ]

    @property
    def changes(self) -> str:
        return quoted(self._changes_name)

    def incarnation(self) -> str | None:
        """A name of this capture that no other has; None: not all changes are recorded."""
        found = self._connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = ? "
            "ORDER BY rowid",
            [self._table.lower()],
        ).fetchall()
        token = _TOKEN.search(found[-1][1]) if found else None
        if token is None:
            return None
        name = str(token.group(1))
        tables = self._connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)",
            [self._changes_name, f"spillway_replaced_{self._table.lower()}"],
        ).fetchone()
        return name if tables == (2,) and found[-5:] == self._statements(name) else None

    def create(self) -> None:
        """Record changes from now on; a valid capture is kept."""
        if self.incarnation() is not None:
            return
        self.drop()
        columns = self._connection.execute(
            "SELECT name, type FROM pragma_table_info(?) ORDER BY cid", [self._table]
        ).fetchall()
        declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        self._connection.execute(
            f"CREATE TABLE {self.changes} (spillway_number INTEGER PRIMARY KEY AUTOINCREMENT, "
            f"spillway_weight INTEGER NOT NULL, spillway_at REAL NOT NULL DEFAULT ({NOW}), {declared})"
        )
        identity, collations = self._identity, dict(self._identity)
        kept = ", ".join(
            f"{quoted(name)} {kind}" + (f" COLLATE {quoted(collations[name])}" if name in collations else "")
            for name, kind in self._all_columns
        )
        self._connection.execute(f"CREATE TABLE {self._replaced} ({_KEY} INTEGER, {_ROWID} INTEGER, {kept})")
        places = [[_ROWID] if not identity else [quoted(name) for name, _ in identity]]
        places += [
            [f"{quoted(name)} COLLATE {collation}" for name, collation in key.columns]
            for key in self._keys
            if key.columns and all(collation in _KNOWN_COLLATIONS for _, collation in key.columns)
        ]
        for number, parts in enumerate(places):
            index = quoted(f"spillway_replaced_{self._table.lower()}_{number}")
            self._connection.execute(f"CREATE INDEX {index} ON {self._replaced} ({', '.join(parts)})")
        for _, statement in self._statements(uuid4().hex):
            self._connection.execute(statement)

    def drop(self) -> None:
        for name in self._triggers:
            self._connection.execute(f"DROP TRIGGER IF EXISTS {quoted(name)}")
        for table in (self.changes, self._replaced):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def prune(self, number: int) -> None:
        """Remove the changes up to this number, while no statement is running.

        A statement that fails (INSERT OR FAIL) leaves rows, but not their numbers, in SQLite's own note of
        the last number; without that the next change would get a number that was already read.
        """
        self._connection.execute(f"DELETE FROM {self.changes} WHERE spillway_number <= ?", [number])
        self._connection.execute(f"DELETE FROM {self._replaced}")
        last = max(number, self.last())
        self._connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", [self._changes_name])
        self._connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", [self._changes_name, last])

    def last(self) -> int:
        """The number of the last change, also after changes were deleted."""
        ((number,),) = self._connection.execute(
            "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0), "
            f"coalesce((SELECT max(spillway_number) FROM {self.changes}), 0))",
            [self._changes_name],
        ).fetchall()
        return int(number)

    def _statements(self, token: str) -> list[tuple[str, str]]:
        """The triggers of this table as it is now, with their names."""
        keys = self._keys
        noted = {image: [self._note(key, image) for key in keys] for image in ("INSERT", "UPDATE")}
        settled = [self._settle(key) for key in keys]
        out, into = self._record(-1, "OLD"), self._record(1, "NEW")
        touched = f"DELETE FROM {self._replaced} WHERE {self._same(self._replaced, 'OLD', stored=True)};"
        events = (
            ("BEFORE INSERT", noted["INSERT"]),
            ("BEFORE UPDATE", noted["UPDATE"]),
            ("AFTER INSERT", [*settled, into]),
            ("AFTER UPDATE", [touched, *settled, out, into]),
            ("AFTER DELETE", [touched, out]),
        )
        return [
            (
                name,
                f"CREATE TRIGGER {quoted(name)} {event} ON {self._source} /* {token} */ "
                f"FOR EACH ROW BEGIN {' '.join(body)} END",
            )
            for name, (event, body) in zip(self._triggers, events, strict=True)
        ]

    def _record(self, weight: int, image: str) -> str:
        names = self._names
        values = ", ".join(f"{image}.{name}" for name in names)
        return (
            f"INSERT INTO {self.changes} (spillway_weight, {', '.join(names)}) VALUES ({weight}, {values});"
        )

    def _note(self, key: _Key, event: str) -> str:
        """Put the rows that have the key of a new row into the table of replaced rows."""
        rowid = f"r.{self._rowid}" if not self._identity else "NULL"
        columns = ", ".join(f"r.{quoted(name)}" for name, _ in self._all_columns)
        found = f"FROM {self._source} r WHERE {self._match(key, 'r')}"
        identity = [quoted(name) for name, _ in self._identity]
        here = f"({', '.join(identity)})" if identity else _ROWID
        there = ", ".join(f"r.{name}" for name in identity) or rowid
        other = f" AND NOT ({self._same('r', 'OLD')})" if event == "UPDATE" else ""
        return (
            f"{self._clear(key)} "
            f"DELETE FROM {self._replaced} WHERE {here} IN (SELECT {there} {found}); "
            f"INSERT INTO {self._replaced} SELECT {key.number}, {rowid}, {columns} {found}{other};"
        )

    def _settle(self, key: _Key) -> str:
        """Record the noted rows of a key that are gone, now that the new row is there."""
        names = ", ".join(f"s.{name}" for name in self._names)
        ours = f"{_KEY} = {key.number} AND {self._match(key, 's')}"
        gone = (
            f"({self._same('s', 'NEW', stored=True)} OR NOT EXISTS "
            f"(SELECT 1 FROM {self._source} r WHERE {self._same('s', 'r', stored=True)}))"
        )
        return (
            f"INSERT INTO {self.changes} (spillway_weight, {', '.join(self._names)}) "
            f"SELECT -1, {names} FROM {self._replaced} s WHERE {ours} AND {gone}; "
            f"{self._clear(key)}"
        )

    def _clear(self, key: _Key) -> str:
        """Take out the noted rows that have the key of a new one."""
        matches = self._match(key, self._replaced)
        return f"DELETE FROM {self._replaced} WHERE {_KEY} = {key.number} AND {matches};"

    def _match(self, key: _Key, row: str) -> str:
        """Whether a row has the key of the new one; NULL is equal to nothing, as in SQLite's unique keys."""
        if not key.columns:
            own = f"{row}.{self._rowid}" if row == "r" else f"{row}.{_ROWID}"
            return f"{own} = NEW.{self._rowid}"
        return " AND ".join(
            f"{row}.{quoted(name)} = NEW.{quoted(name)} COLLATE {quoted(collation)}"
            for name, collation in key.columns
        )

    def _same(self, row: str, other: str, *, stored: bool = False) -> str:
        """Whether two rows are the same one; `stored`: the first is in the table of replaced rows."""
        identity = self._identity
        if not identity:
            own = f"{row}.{_ROWID if stored else self._rowid}"
            return f"{own} = {other}.{self._rowid}"
        return " AND ".join(
            f"{row}.{quoted(name)} = {other}.{quoted(name)} COLLATE {quoted(collation)}"
            for name, collation in identity
        )

    @cached_property
    def _names(self) -> list[str]:
        found = self._connection.execute(
            "SELECT name FROM pragma_table_info(?) ORDER BY cid", [self._table]
        ).fetchall()
        return [quoted(name) for (name,) in found]

    @cached_property
    def _all_columns(self) -> list[tuple[str, str]]:
        """Generated ones too: a key may be over them."""
        return self._connection.execute(
            "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid", [self._table]
        ).fetchall()

    @cached_property
    def _rowid(self) -> str:
        """A name of the row's number that no column takes."""
        taken = {name.lower() for name, _ in self._all_columns}
        for name in ("rowid", "_rowid_", "oid"):
            if name not in taken:
                return name
        raise SourceError(
            f"SQLite table {self._table} has columns named rowid, _rowid_ and oid, so its rows have no name; "
            "rename one of the columns"
        )

    @cached_property
    def _identity(self) -> tuple[tuple[str, str], ...]:
        """The primary key of a table WITHOUT ROWID; nothing for all others."""
        try:
            self._connection.execute(f"SELECT {self._rowid} FROM {self._source} LIMIT 0")
        except sqlite3.OperationalError:
            return next(columns for origin, columns in self._indexes if origin == "pk")
        return ()

    @cached_property
    def _keys(self) -> list[_Key]:
        columns = [columns for _, columns in self._indexes]
        if not self._identity:
            columns.insert(0, ())
        return [_Key(number, key) for number, key in enumerate(columns)]

    @cached_property
    def _indexes(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """The origin and the columns of each unique index."""
        found = []
        indexes = self._connection.execute(
            'SELECT name, origin FROM pragma_index_list(?) WHERE "unique" ORDER BY name', [self._table]
        ).fetchall()
        for name, origin in indexes:
            columns = self._connection.execute(
                "SELECT coalesce(i.name, c.name), i.coll FROM pragma_index_xinfo(?) i LEFT JOIN "
                "pragma_table_info(?) c ON i.cid = -1 AND c.pk WHERE i.key ORDER BY i.seqno",
                [name, self._table],
            ).fetchall()
            if any(column is None for column, _ in columns):
                raise SourceError(
                    f"SQLite table {self._table} has the unique index {name} over an expression, so changes "
                    "by REPLACE cannot be recorded; use a unique index over columns"
                )
            found.append((origin, tuple(columns)))
        return found
