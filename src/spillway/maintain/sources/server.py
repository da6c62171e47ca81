"""What a database must offer so that views over its tables can be maintained.

A vector is a text that says exactly which committed changes it contains: whole transactions, across all
tables of the server. For two vectors of one server that were read after each other, the later one contains
the earlier. Every answer comes from one transaction, together with the changes that this transaction saw and
the given vector does not contain; so the caller can take them out, whoever writes meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from spillway.maintain.execute import Answer
from spillway.maintain.unify import KeySet
from spillway.plan.schema import Column

LOGICAL, TRIGGERS = "logical", "triggers"
FEEDS = (LOGICAL, TRIGGERS)
"""Where the changes of a PostgreSQL server come from."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of a server, and the columns that a view reads of it, in the order of `c0`, `c1`, ..."""

    table: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A vector, and per relation the signed rows that belong to it."""

    vector: str
    deltas: tuple[pa.Table, ...]
    age_seconds: float | None = None
    """How long ago the oldest of these changes was made, where the server knows."""


class Server(Protocol):
    """One database: a PostgreSQL server, an SQLite or DuckDB file.

    A server with a true attribute `remote` works elsewhere and may be used by any one thread at a time; what
    it is told takes place side by side with what others are told.
    """

    def columns(self, table: str) -> tuple[Column, ...]:
        """The columns of a table; an unknown table is refused."""

    def install(self, tables: Sequence[str], reader: str) -> None:
        """Record the changes of `tables` from now on, and keep them until `reader` has confirmed them."""

    def resume(self, tables: Sequence[str], reader: str) -> None:
        """Go on reading the changes that `install` asked for, maybe in another process."""

    def forget(self, tables: Sequence[str], reader: str) -> None:
        """`reader` needs no changes any more; what only it needed is removed from the server."""

    def load(self, relations: Sequence[Relation], at: str | None = None) -> Cut:
        """All rows: as they are now, or as they were at the vector `at`."""

    def changes(self, relations: Sequence[Relation], since: str) -> Cut:
        """The changes that have committed and that `since` does not contain."""

    def ask(self, relation: Relation, key_sets: Sequence[KeySet], vector: str) -> Answer:
        """Answer a maintenance query; `later` are the changes it saw beyond `vector`."""

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        """`reader` needs no change that `vector` contains any more."""

    def close(self) -> None: ...
