"""Who reads the change tables of a SQLite or DuckDB file: a row for each reader and table, in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

READERS = '"spillway_readers"'
EVENTS = ("insert", "delete", "update")
"""Each has a trigger that writes into the change table."""


class Executes(Protocol):
    """A connection with question marks for parameters."""

    def execute(self, query: Any, parameters: Any = ..., /) -> Any: ...


def trigger_name(event: str, table: str) -> str:
    return f"spillway_{event.lower()}_{table.lower()}"


def left_by_all(connection: Executes, tables: Sequence[str], reader: str) -> Iterator[str]:
    """Take a reader off some tables; those that nobody reads any more."""
    for table in tables:
        name = table.lower()
        connection.execute(f"DELETE FROM {READERS} WHERE reader = ? AND relation = ?", [reader, name])
        others = f"SELECT count(*) FROM {READERS} WHERE relation = ?"
        if connection.execute(others, [name]).fetchall() == [(0,)]:
            yield table
