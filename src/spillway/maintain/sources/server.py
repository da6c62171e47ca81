"""What a database must offer so that views over its tables can be maintained.

A vector is a text that says exactly which committed changes it contains: whole transactions, across all
tables of the server. Of two vectors read from one server, the later contains the earlier. Every answer comes
from one transaction, together with the changes that this transaction saw and the given vector does not
contain; so the caller can take them out, even while others write.

A vector also says which incarnation of the tables it belongs to (`position.py`). A server refuses a vector of
another incarnation with an `IncarnationError`: the table was dropped and recreated, or an older copy of the
source or of the view store was restored. To know the latter it keeps a mark for each reader. A round commits
in three steps: `announce` leaves the mark of the new vector at the source, then the view is committed with
that vector, then `confirm` makes the mark the only valid one. After a kill between two of them one of the two
marks is that of the stored view; after a restore neither is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from spillway.maintain.execute import Answer
from spillway.maintain.unify import KeySet
from spillway.model import Column

LOGICAL, TRIGGERS = "logical", "triggers"
FEEDS = (LOGICAL, TRIGGERS)
"""Where the changes of a PostgreSQL server come from."""


@dataclass(frozen=True, slots=True)
class SourceTable:
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

    A server with a true attribute `remote` works elsewhere. One thread at a time may use it; several such
    servers work in parallel.
    """

    def columns(self, table: str) -> tuple[Column, ...]:
        """The columns of a table; an unknown table is refused."""

    def install(self, tables: Sequence[str], reader: str, store: str = "") -> None:
        """Record the changes of `tables` from now on, and keep them until `reader` has confirmed them.

        A reader is new to the server; `store` says where its view is stored.
        """

    def resume(self, tables: Sequence[str], reader: str) -> None:
        """Go on reading the changes that `install` asked for, maybe in another process."""

    def forget(self, tables: Sequence[str], reader: str, store: str = "") -> list[str]:
        """No changes are needed for `reader`, for `reader/...`, and for others with the same `store`.

        What only they needed is removed from the server. Returns the other stores for which changes of
        `tables` are still kept.
        """

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        """All rows: as they are now, or as they were at the vector `at`."""

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        """The changes that have committed and that `since` does not contain."""

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        """Answer a maintenance query; `later` are the changes it saw beyond `vector`."""

    def announce(self, tables: Sequence[str], reader: str, before: str | None, vector: str) -> None:
        """`reader` stands at `before` (None: nowhere yet) and is about to commit `vector`.

        Refused if the tables are no longer those that both belong to.
        """

    def confirm(self, tables: Sequence[str], reader: str, vector: str) -> None:
        """`reader` no longer needs the changes that `vector` contains."""

    def close(self) -> None: ...
