"""Who reads the changes that a SQLite or DuckDB file keeps: two tables in that file.

`readers` has a row for each reader and table, with the number up to which changes were read. `views` has a
row for each reader: where its store is, the mark of the position that it confirmed, and of the one that it
announced (`server.py` says why). All methods run in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from spillway.errors import SourceError
from spillway.maintain.sources.position import SourcePosition, restored


class Executes(Protocol):
    """A connection with question marks for parameters."""

    def execute(self, query: Any, parameters: Any = ..., /) -> Any: ...


RESERVED = ("spillway_number", "spillway_weight", "spillway_at", "spillway_xid")
"""Columns of change tables."""


def refuse_reserved(table: str, names: Iterable[str]) -> None:
    """`table` says the kind of source, the table and where it is."""
    for name in names:
        if name.lower() in RESERVED:
            raise SourceError(
                f"{table} has a column {name}, a name that Spillway uses itself; rename the column"
            )


class ChangeReaders:
    """`prefix` comes before the names of the two tables; `source` names the file in errors."""

    def __init__(self, connection: Executes, prefix: str, source: str) -> None:
        self._connection, self._source = connection, source
        self._readers, self._views = f"{prefix}readers", f"{prefix}views"

    def create(self) -> None:
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._readers} "
            "(reader TEXT, relation TEXT, vector BIGINT, PRIMARY KEY (reader, relation))"
        )
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._views} "
            "(reader TEXT PRIMARY KEY, store TEXT, mark TEXT, announced TEXT)"
        )

    def drop(self) -> None:
        self._connection.execute(f"DROP TABLE {self._readers}")
        self._connection.execute(f"DROP TABLE {self._views}")

    def enter(self, reader: str, store: str, relations: Sequence[str]) -> None:
        self._connection.execute(f"INSERT INTO {self._views} VALUES (?, ?, NULL, NULL)", [reader, store])
        for relation in relations:
            self._connection.execute(f"INSERT INTO {self._readers} VALUES (?, ?, 0)", [reader, relation])

    def leave(self, reader: str, store: str) -> list[str]:
        """Remove a reader, its parts and others of the same store; returns the relations without readers."""
        names = [
            name
            for (name,) in self._rows(
                f"SELECT reader FROM {self._readers} WHERE reader = ? OR reader LIKE ? UNION "
                f"SELECT reader FROM {self._views} WHERE store = ? AND store <> ''",
                [reader, f"{reader}/%", store],
            )
        ]
        marks = ", ".join("?" for _ in names)
        left = self._rows(f"SELECT DISTINCT relation FROM {self._readers} WHERE reader IN ({marks})", names)
        self._connection.execute(f"DELETE FROM {self._readers} WHERE reader IN ({marks})", names)
        self._connection.execute(f"DELETE FROM {self._views} WHERE reader IN ({marks})", names)
        return [relation for (relation,) in left if not self.stores(relation)]

    def stores(self, relation: str) -> list[str]:
        """The stores of all that read a relation."""
        return [
            store or "unknown"
            for (store,) in self._rows(
                f"SELECT v.store FROM {self._readers} r LEFT JOIN {self._views} v USING (reader) "
                "WHERE r.relation = ? ORDER BY 1",
                [relation],
            )
        ]

    def empty(self) -> bool:
        return not self._rows(f"SELECT 1 FROM {self._readers} LIMIT 1", [])

    def stands_at(self, reader: str, mark: str) -> bool:
        """Whether a reader may be where `mark` is."""
        found = self._rows(f"SELECT mark, announced FROM {self._views} WHERE reader = ?", [reader])
        return bool(found) and mark in found[0]

    def announce(self, reader: str, before: str | None, position: SourcePosition) -> None:
        """Leave the mark of the new position; refused if the reader is not at the vector `before`."""
        mark = None if before is None else SourcePosition.read(before).mark
        if mark is not None and not self.stands_at(reader, mark):
            raise restored(self._source)
        self._connection.execute(
            f"UPDATE {self._views} SET mark = ?, announced = ? WHERE reader = ?",
            [mark, position.mark, reader],
        )

    def confirm(self, reader: str, position: SourcePosition) -> None:
        self._connection.execute(
            f"UPDATE {self._views} SET mark = ?, announced = NULL WHERE reader = ?", [position.mark, reader]
        )
        for relation, number in position.at.items():
            self._connection.execute(
                f"UPDATE {self._readers} SET vector = ? WHERE reader = ? AND relation = ?",
                [number, reader, relation],
            )

    def least(self, relation: str) -> int:
        """Up to here all readers have read."""
        ((number,),) = self._rows(f"SELECT min(vector) FROM {self._readers} WHERE relation = ?", [relation])
        return int(number)

    def _rows(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(query, parameters).fetchall()
        return found
