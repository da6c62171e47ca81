"""The stored view: a DuckDB file with the view's rows, how often each occurs, and the vectors of the sources.

A round's delta and its vectors are committed in one transaction, so a restart continues exactly there.
`result` is the view to read: the named columns and `_count` (see `count_name`). A count can never
become negative; if a delta would make it so, the sources and the view disagree and nothing is written. Rows
are found again by a digest of 128 bits: comparing all columns of a million rows takes a second, comparing
digests 30 ms. Of an aggregated view `result` has one row per group (`group_store.py`); the rows of the
join are stored beneath.
"""

from __future__ import annotations

import json
import platform
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from spillway.errors import CheckpointError, StateError, disk_reason, file_reason
from spillway.maintain.aggregation import Aggregation
from spillway.maintain.delta import WEIGHT
from spillway.maintain.evaluation import evaluating
from spillway.maintain.group_store import GROUP, GroupStore
from spillway.maintain.identifier import quoted

COUNT = "_count"
_DIGEST = "row_digest"
_STATE = ("format", "fingerprint", "reader", "round", "vectors")
FORMAT = 3
"""3: one zero and one NaN. 2: positions with incarnations."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The vectors of the stored rows; `round` is 0 after the initial load."""

    reader: str
    round: int
    vectors: Mapping[str, str]


class ViewStore:
    """One stored view, opened by `open`; `names` are the columns of the join in order."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        inode: int,
        reader: str,
        names: Sequence[str],
        aggregation: Aggregation | None,
    ) -> None:
        self._connection, self._path, self._inode = connection, path, inode
        self._names = tuple(names)
        self._groups = None if aggregation is None else GroupStore(connection, aggregation)
        self.reader = reader
        """The name under which servers keep changes for this store."""
        self.count_name = _free_name(COUNT, names)
        """The column of `result` that says how often a row occurs."""

    @staticmethod
    def open(
        path: str | Path,
        fingerprint: str,
        names: Sequence[str],
        aggregation: Aggregation | None = None,
        *,
        reload: bool = False,
    ) -> ViewStore:
        """Open a store or create it; what it holds must be this view, unless it is about to be loaded."""
        path = Path(path)
        connection = _connect(path)
        try:
            _refuse_foreign(connection, path)
            reader = _claim(connection, path, fingerprint, reload=reload)
        except BaseException:
            connection.close()
            raise
        return ViewStore(connection, path, path.stat().st_ino, reader, names, aggregation)

    @staticmethod
    def holds(path: str | Path, fingerprint: str) -> bool:
        """Whether there is a store with the view of this fingerprint; nothing is changed."""
        if not Path(path).exists():
            return False
        _check_file(Path(path))
        try:
            with duckdb.connect(str(path), read_only=True) as connection:
                found = connection.execute("SELECT format, fingerprint FROM state WHERE vectors IS NOT NULL")
                return found.fetchall() == [(FORMAT, fingerprint)]
        except duckdb.CatalogException:
            return False
        except duckdb.Error as error:
            raise CheckpointError(f"view store {path} cannot be opened: {_why(error)}") from error

    def state(self) -> StoredState | None:
        """What is stored; None before the initial load."""
        reader, number, vectors = self._row()
        return None if vectors is None else StoredState(reader, number, json.loads(vectors))

    def forget(self) -> None:
        """Rows can still be read, but a round must load them again first."""
        self._connection.execute("UPDATE state SET vectors = NULL")

    @property
    def place(self) -> str:
        """Where this store is; to servers, another reader with the same place is an old one of this store."""
        return f"{platform.node()}:{self._path.resolve()}"

    def check_in_place(self) -> None:
        """Refuse to continue if another file has replaced the open one."""
        if not self._path.exists() or self._path.stat().st_ino != self._inode:
            raise CheckpointError(
                f"view store {self._path} was removed or replaced while it was maintained; run the job again"
            )

    def replace(self, rows: pa.Table, vectors: Mapping[str, str], number: int) -> int:
        """Replace all rows of the view; `rows` is a signed delta from nothing."""
        self._check_positive(rows)
        with self._transaction():
            self._connection.register("incoming", rows)
            self._connection.execute(
                f"CREATE OR REPLACE TABLE view_rows AS SELECT {', '.join(self._columns)}, "
                f"{WEIGHT} AS {COUNT}, {self._digests} FROM incoming"
            )
            if self._groups is not None:
                self._groups.replace("view_rows")
            else:
                self._connection.execute("DROP TABLE IF EXISTS group_rows")  # of another view
                items = [f"o{place} AS {quoted(name)}" for place, name in enumerate(self._names)]
                items.append(f"{COUNT} AS {self.count_name}")
                self._connection.execute(
                    f"CREATE OR REPLACE VIEW result AS SELECT {', '.join(items)} FROM view_rows"
                )
            self._save(vectors, number)
        return int(rows.num_rows)

    def apply(self, delta: pa.Table, vectors: Mapping[str, str], number: int) -> None:
        """Add a round's delta to the counts; rows that reach zero leave."""
        with self._transaction():
            if delta.num_rows:
                self._connection.register("incoming", delta)
                self._connection.execute(
                    f"CREATE OR REPLACE TEMP TABLE delta AS SELECT *, {self._digests} FROM incoming"
                )
                self._connection.execute(
                    f"CREATE OR REPLACE TEMP TABLE met AS SELECT r.rowid AS place, {_DIGEST}, "
                    f"r.{COUNT} + d.{WEIGHT} AS {COUNT} FROM view_rows r JOIN delta d USING ({_DIGEST})"
                )
                self._connection.execute(
                    f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT {', '.join(self._columns)}, "
                    f"{WEIGHT} AS {COUNT}, {', '.join(self._digest_names)} FROM delta "
                    f"ANTI JOIN met USING ({_DIGEST})"
                )
                self._refuse_negative()
                self._connection.execute(
                    f"UPDATE view_rows SET {COUNT} = met.{COUNT} FROM met "
                    f"WHERE view_rows.rowid = met.place AND met.{COUNT} > 0"
                )
                self._connection.execute(
                    f"DELETE FROM view_rows WHERE rowid IN (SELECT place FROM met WHERE {COUNT} = 0)"
                )
                self._connection.execute("INSERT INTO view_rows FROM fresh")
                if self._groups is not None:
                    self._groups.apply("view_rows", "delta", WEIGHT)
            self._save(vectors, number)

    @property
    def _columns(self) -> list[str]:
        return [f"o{place}" for place in range(len(self._names))]

    @property
    def _digest(self) -> str:
        """SQL of a row's digest, over its values as text; lengths keep neighbours from running together."""
        values = ", ".join(
            f"coalesce(concat(length({name}::VARCHAR), ':', {name}::VARCHAR), '-')" for name in self._columns
        )
        return f"md5_number(concat({values}))"

    @property
    def _digests(self) -> str:
        """The digest of a row, and that of its group where there are groups."""
        own = f"{self._digest} AS {_DIGEST}"
        return own if self._groups is None else f"{own}, {self._groups.digest()} AS {GROUP}"

    @property
    def _digest_names(self) -> list[str]:
        return [_DIGEST] if self._groups is None else [_DIGEST, GROUP]

    def rows(self) -> pa.Table:
        """All rows with their weight, in the form of a delta."""
        return self._connection.sql(
            f"SELECT {', '.join([*self._columns, f'{COUNT} AS {WEIGHT}'])} FROM view_rows"
        ).to_arrow_table()

    def size(self) -> int:
        """Rows of `result`."""
        return self._number("SELECT count(*) FROM result")

    def result(self) -> list[tuple[object, ...]]:
        """What a reader of `result` sees."""
        return self._connection.execute("FROM result").fetchall()

    def wrong_groups(self) -> int:
        """How many groups of an aggregated view differ from its stored rows."""
        return 0 if self._groups is None else self._groups.wrong("view_rows")

    def note(self, name: str) -> str | None:
        """Something learned that is not needed for correctness."""
        found = self._connection.execute("SELECT value FROM notes WHERE name = ?", [name]).fetchall()
        return str(found[0][0]) if found else None

    def save_note(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", [name, value])

    def close(self) -> None:
        self._connection.close()

    def _row(self) -> tuple[str, int, str | None]:
        ((reader, number, vectors),) = self._connection.execute(
            "SELECT reader, round, vectors FROM state"
        ).fetchall()
        return reader, number, vectors

    def _save(self, vectors: Mapping[str, str], number: int) -> None:
        self._connection.execute(
            "UPDATE state SET round = ?, vectors = ?", [number, json.dumps(dict(vectors))]
        )

    def _check_positive(self, rows: pa.Table) -> None:
        self._connection.register("incoming", rows)
        if negative := self._number(f"SELECT count(*) FROM incoming WHERE {WEIGHT} < 0"):
            raise _disagreement(negative)

    def _refuse_negative(self) -> None:
        counts = f"SELECT {COUNT} FROM met UNION ALL SELECT {COUNT} FROM fresh"
        if negative := self._number(f"SELECT count(*) FROM ({counts}) WHERE {COUNT} < 0"):
            raise _disagreement(negative)

    def _number(self, sql: str) -> int:
        ((number,),) = self._connection.execute(sql).fetchall()
        return int(number)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            with evaluating():
                yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    _check_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(str(path))
    except OSError as error:
        reason = file_reason(error, "give another store")
        raise CheckpointError(f"view store {path} cannot be created: {error.filename}: {reason}") from None
    except duckdb.Error as error:
        raise CheckpointError(f"view store {path} cannot be opened: {_why(error)}") from error
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _refuse_foreign(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """A file with other tables belongs to somebody else: we do not write to it."""
    found = connection.execute(
        "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database() GROUP BY ALL ORDER BY 1"
    ).fetchall()
    if found and dict(found).get("state") != list(_STATE):
        raise CheckpointError(
            f"view store {path} is a DuckDB file with tables of its own ({found[0][0]}); "
            "give a store that does not exist yet"
        )


def _claim(connection: duckdb.DuckDBPyConnection, path: Path, fingerprint: str, *, reload: bool) -> str:
    """Make the store that of the view with this fingerprint; returns the name of its reader."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS state (format INTEGER, fingerprint VARCHAR, reader VARCHAR, "
        "round BIGINT, vectors VARCHAR)"
    )
    connection.execute("CREATE TABLE IF NOT EXISTS notes (name VARCHAR PRIMARY KEY, value VARCHAR)")
    found = connection.execute("SELECT format, fingerprint, reader, vectors FROM state").fetchall()
    if not found:
        reader = uuid.uuid4().hex
        connection.execute("INSERT INTO state VALUES (?, ?, ?, 0, NULL)", [FORMAT, fingerprint, reader])
        return reader
    ((stored_format, stored, reader, vectors),) = found
    why = None
    if stored_format != FORMAT:
        why = f"has format {stored_format}, this version reads {FORMAT}"
    elif stored != fingerprint and vectors is not None:
        why = "holds another view, or the types of its sources changed"
    if why is not None and not reload:
        raise CheckpointError(
            f"view store {path} {why}; use another store, or run spillway maintain with --reload to load "
            "the view into this one"
        )
    # What is stored may belong to another view, so it is loaded again before it is used.
    if stored != fingerprint or stored_format != FORMAT:
        connection.execute(
            "UPDATE state SET format = ?, fingerprint = ?, vectors = NULL", [FORMAT, fingerprint]
        )
        connection.execute("DELETE FROM notes")
    return str(reader)


def _disagreement(rows: int) -> StateError:
    return StateError(
        f"the round would remove {rows} rows that the stored view does not hold: changes of a source were "
        "not recorded; run spillway maintain with --reload to load the view again"
    )


def _free_name(name: str, taken: Sequence[str]) -> str:
    """The name with as many underscores before it as it takes to be no other column's."""
    names = {column.lower() for column in taken}
    while name in names:
        name = f"_{name}"
    return name


def _check_file(path: Path) -> None:
    """Refuse what DuckDB would open as something else."""
    try:
        if path.is_dir():
            raise CheckpointError(f"view store {path} is a directory; give a file")
        if not path.exists() or not path.stat().st_size:
            return
        with path.open("rb") as file:
            start = file.read(12)
    except OSError as error:
        raise CheckpointError(f"view store {path} cannot be opened: {file_reason(error)}") from None
    if start[8:12] != b"DUCK":
        raise CheckpointError(f"view store {path} is not a DuckDB file; give a store that does not exist yet")


def _why(error: Exception) -> str:
    reason = str(error).splitlines()[0]
    return disk_reason(reason) or f"{reason}; stop who uses it, or restore it from a backup"
