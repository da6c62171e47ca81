"""Random histories of sources and stores that are written, recreated, restored and killed, for every kind.

After a round the stored view equals its recomputation as a multiset, or the round asked for a reload; and it
asks only if something was recreated, restored or lost. A failing example is printed as a call of `history`,
which can be pasted below as a test.
"""

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.examples import examples
from kit.postgres import PostgresServers
from spillway.errors import IncarnationError
from spillway.job import Document
from spillway.maintain.maintenance import Maintenance, open_maintenance

KINDS = ("sqlite", "duckdb", "delta", "postgresql", "postgresql log")
SCHEMA = pa.schema({"id": pa.int64(), "k": pa.int64(), "v": pa.int64()})
Row = tuple[int, int, int]
Step = tuple[Any, ...]


class Killed(BaseException):
    """Stands for kill -9: nothing of ours catches it."""


class SqlSource:
    """A table in a file of SQLite or DuckDB, or in PostgreSQL; `id` is its key, so rows are replaced."""

    def __init__(self, connect: Callable[[], Any], table: str = "o") -> None:
        self._connect, self._table = connect, table

    def create(self) -> None:
        self.run(f"CREATE TABLE {self._table} (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT)")

    def recreate(self) -> None:
        self.run(f"DROP TABLE {self._table}")
        self.create()

    def replace(self, row: Row) -> None:
        self.run(f"INSERT OR REPLACE INTO {self._table} VALUES {row}")

    def ignore(self, row: Row) -> None:
        self.run(f"INSERT INTO {self._table} VALUES {row} ON CONFLICT DO NOTHING")

    def update(self, identity: int, value: int) -> None:
        self.run(f"UPDATE {self._table} SET v = {value} WHERE id = {identity}")

    def delete(self, identity: int) -> None:
        self.run(f"DELETE FROM {self._table} WHERE id >= {identity}")

    def rows(self) -> list[Row]:
        return self.run(f"SELECT id, k, v FROM {self._table}")

    def run(self, statement: str) -> list[Any]:
        connection = self._connect()
        try:
            cursor = connection.execute(statement)
            return cursor.fetchall() if statement.startswith("SELECT") else []
        finally:
            connection.close()


class SqliteSource(SqlSource):
    def create(self) -> None:
        self.run(f"CREATE TABLE {self._table} (id INTEGER PRIMARY KEY, k INTEGER, v INTEGER)")
        self.run("CREATE UNIQUE INDEX some ON o (v) WHERE v > 2")

    def update(self, identity: int, value: int) -> None:
        self.run(f"UPDATE OR REPLACE o SET v = {value}, id = {value} WHERE id = {identity}")


class DuckDbSource(SqlSource):
    def recreate(self) -> None:
        self.run("CREATE OR REPLACE TABLE o (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT)")


class PostgresSource(SqlSource):
    def replace(self, row: Row) -> None:
        self.run(
            f"INSERT INTO {self._table} VALUES {row} "
            "ON CONFLICT (id) DO UPDATE SET k = excluded.k, v = excluded.v"
        )

    def recreate(self) -> None:
        self.run(f"DROP TABLE {self._table}")
        self.create()


class DeltaSource:
    def __init__(self, path: Path) -> None:
        self._path = path / "o"

    def create(self) -> None:
        write_deltalake(self._path, self._table([]))

    def recreate(self) -> None:
        shutil.rmtree(self._path)
        self.create()

    def replace(self, row: Row) -> None:
        kept = [kept_row for kept_row in self.rows() if kept_row[0] != row[0]]
        write_deltalake(self._path, self._table([*kept, row]), mode="overwrite")

    def ignore(self, row: Row) -> None:
        if all(kept_row[0] != row[0] for kept_row in self.rows()):
            write_deltalake(self._path, self._table([row]), mode="append")

    def update(self, identity: int, value: int) -> None:
        DeltaTable(self._path).update({"v": str(value)}, predicate=f"id = {identity}")

    def delete(self, identity: int) -> None:
        DeltaTable(self._path).delete(f"id >= {identity}")

    def rows(self) -> list[Row]:
        found = DeltaTable(self._path).to_pyarrow_table().select(SCHEMA.names)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def _table(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


class Life:
    """A view over `o` and over `p`, which is always an SQLite table, and all that happens to them."""

    def __init__(self, kind: str, root: Path, dsn: str) -> None:
        self.root, self.kind = root, kind
        place = root / "one.db"
        self.p = SqlSource(lambda: sqlite3.connect(root / "two.sqlite", isolation_level=None), "p")
        self.o: Any
        if kind == "sqlite":
            self.o = SqliteSource(lambda: sqlite3.connect(place, isolation_level=None))
        elif kind == "duckdb":
            self.o = DuckDbSource(lambda: duckdb.connect(str(place)))
        elif kind == "delta":
            place.mkdir()
            self.o = DeltaSource(place)
        else:
            self.o = PostgresSource(lambda: psycopg.connect(dsn, autocommit=True))
        server = {"kind": kind.split()[0], "dsn" if dsn else "path": dsn or "one.db"}
        self.job = Document(
            {
                "view": {"sql": "SELECT o.id AS id, o.v AS v, p.v AS w FROM o JOIN p ON o.k = p.k"},
                "servers": {"one": server, "two": {"kind": "sqlite", "path": "two.sqlite"}},
                "sources": {"o": {"server": "one"}, "p": {"server": "two"}},
                "maintain": {"store": "view.duckdb", "strategy": "batch"},
            },
            root,
        ).maintain_job()
        self.p.create()
        self.o.create()
        for number in range(3):
            self.o.replace((number, number % 2, number))
            self.p.replace((number, number % 2, 10 * number))
        self.disturbed = False
        self.copies: set[str] = set()
        self.open: Maintenance | None = None
        self.context = ExitStack()

    def write(self, table: str, what: str, *values: int) -> None:
        source = self.o if table == "o" else self.p
        if self.kind == "duckdb":
            self.close()  # a file of DuckDB has one process at a time
        if what in ("replace", "ignore"):
            getattr(source, what)(values)
        else:
            getattr(source, what)(*values)

    def recreate(self, table: str) -> None:
        if self.kind == "duckdb":
            self.close()
        (self.o if table == "o" else self.p).recreate()
        self.disturbed = True

    def save(self, what: str) -> None:
        if (self.root / what).exists():
            self.close()
            shutil.rmtree(self.root / "copies" / what, ignore_errors=True)
            _copy(self.root / what, self.root / "copies" / what)
            self.copies.add(what)

    def restore(self, what: str, stay: bool) -> None:
        """Of a source also while the manager has it open, if the kind allows it."""
        if what not in self.copies:
            return
        if not stay or what == "view.duckdb" or self.kind == "duckdb":
            self.close()
        if (self.root / what).is_dir():
            shutil.rmtree(self.root / what)
        _copy(self.root / "copies" / what, self.root / what)
        self.disturbed = True

    def lose_store(self) -> None:
        self.close()
        (self.root / "view.duckdb").unlink(missing_ok=True)

    def lose_slot(self) -> None:
        if self.kind == "postgresql log":
            self.o.run(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE database = current_database()"
            )
            self.disturbed = True

    def forget(self) -> None:
        self.close()
        with open_maintenance(self.job, replace=True) as maintenance:
            maintenance.manager.forget()
        self.disturbed = False

    def round(self, killed_at: str | None = None, stay: bool = False) -> None:
        try:
            maintenance = self._opened()
            with _killed(maintenance, killed_at):
                maintenance.manager.start()
                maintenance.manager.round()
        except Killed:
            self.close()
            return
        except IncarnationError as error:
            assert self.disturbed, f"nothing was recreated or restored: {error}"
            assert "\n" not in str(error)
            assert "--reload" in str(error)
            self.reload()
            return
        self._check()
        if not stay:
            self.close()

    def reload(self, killed_at: str | None = None) -> None:
        self.close()
        maintenance = self._opened(replace=True)
        loaded = maintenance.store.state() is not None
        try:
            with _killed(maintenance, killed_at):
                maintenance.manager.reload()
                maintenance.manager.start()
        except Killed:
            self.disturbed = self.disturbed or loaded
            self.close()
            return
        self.disturbed = False
        self._check()
        self.close()

    def close(self) -> None:
        if self.open is not None:
            self.context.close()
            self.open = None

    def _opened(self, *, replace: bool = False) -> Maintenance:
        if self.open is None:
            self.open = self.context.enter_context(open_maintenance(self.job, replace=replace))
        return self.open

    def _check(self) -> None:
        assert self.open is not None
        stored = Counter({tuple(row)[:-1]: row[-1] for row in self.open.store.result()})
        if self.kind == "duckdb":
            self.close()
        p = self.p.rows()
        assert stored == Counter((i, v, w) for i, k, v in self.o.rows() for _, key, w in p if k == key)


def _copy(source: Path, target: Path) -> None:
    """Over what is there: an open file keeps its inode."""
    target.parent.mkdir(exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


@contextmanager
def _killed(maintenance: Maintenance, place: str | None) -> Iterator[None]:
    """Die before the view's commit, or before or between the confirmations that follow."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    patched: list[tuple[Any, str]] = []
    if place == "announced":
        patched = [(maintenance.store, "apply"), (maintenance.store, "replace")]
    elif place == "committed":
        patched = [(server, "confirm") for server in maintenance.servers.values()]
    elif place == "half confirmed":
        patched = [(maintenance.servers["two"], "confirm")]
    for owner, name in patched:
        setattr(owner, name, die)
    try:
        yield
    finally:
        for owner, name in patched:
            delattr(owner, name)


def history(kind: str, steps: list[Step], dsn: str = "") -> None:
    """Live through some steps; the last one is always a round."""
    with tempfile.TemporaryDirectory(prefix="spillway-history-") as root:
        life = Life(kind, Path(root), dsn)
        try:
            for name, *values in [*steps, ("round", None, False)]:
                getattr(life, name)(*values)
        finally:
            life.close()
            if dsn:
                life.forget()  # a slot would keep the server's log


TABLES, SMALL = st.sampled_from("op"), st.integers(0, 4)
PLACES = st.sampled_from([None, "announced", "committed", "half confirmed"])
FILES = st.sampled_from(["one.db", "view.duckdb", "two.sqlite"])
REPLACES = st.tuples(st.just("write"), TABLES, st.just("replace"), SMALL, st.integers(0, 1), SMALL)
WRITES = st.one_of(
    REPLACES,
    st.tuples(st.just("write"), TABLES, st.just("ignore"), SMALL, st.integers(0, 1), SMALL),
    st.tuples(st.just("write"), TABLES, st.just("update"), SMALL, SMALL),
    st.tuples(st.just("write"), TABLES, st.just("delete"), SMALL),
)
ROUND = ("round", None, False)


@st.composite
def scenes(draw: st.DrawFn) -> list[Step]:
    """A few steps that belong together: what happens, changes around it, and a round."""
    some = st.lists(WRITES, min_size=1, max_size=3)
    what = draw(st.sampled_from(["restore", "restore", "restore", "recreate", "kill", "reload", "lose"]))
    before, after = draw(some), draw(st.lists(WRITES, max_size=4))
    stay = draw(st.booleans())
    if what == "restore":
        file = draw(FILES)
        rounds = [
            step for _ in range(draw(st.integers(1, 2))) for step in (*draw(some), ("round", None, stay))
        ]
        after += draw(st.lists(REPLACES, max_size=6))  # as many as the copy lacks: equal numbers come again
        return [*before, ROUND, ("save", file), *rounds, ("restore", file, stay), *after, ROUND]
    if what == "recreate":
        return [*before, ("round", None, stay), ("recreate", draw(TABLES)), *after, ROUND]
    if what == "kill":
        return [*before, ("round", draw(PLACES), False), *after, ROUND]
    if what == "reload":
        return [*before, ("reload", draw(PLACES)), *after, ROUND]
    if what == "lose":
        return [
            *before,
            ROUND,
            (draw(st.sampled_from(["lose_store", "lose_slot", "forget"])),),
            *after,
            ROUND,
        ]
    raise AssertionError(what)


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Scenes one after another; copies that an earlier scene saved may be restored in between."""
    steps = [ROUND]
    for scene in draw(st.lists(scenes(), min_size=1, max_size=3)):
        steps += scene
        steps += draw(st.lists(st.tuples(st.just("restore"), FILES, st.booleans()), max_size=1))
    return steps


SHARE = {"sqlite": 3, "duckdb": 8, "delta": 4, "postgresql": 12, "postgresql log": 12}
"""An example makes files and rounds: this part of the profile's number of examples."""


@pytest.fixture
def dsn_of(postgres: PostgresServers) -> Callable[[str], str]:
    """A database of its own for a history over PostgreSQL."""

    def made(kind: str) -> str:
        if not kind.startswith("postgresql"):
            return ""
        return postgres.database(10 if kind.endswith("log") else 0)

    return made


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories(kind: str, dsn_of: Callable[[str], str]) -> None:
    @settings(
        max_examples=examples(SHARE[kind], everyday=2),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=False,
    )
    @given(steps=histories())
    def tried(steps: list[Step]) -> None:
        try:
            history(kind, steps, dsn_of(kind))
        except BaseException as error:
            error.add_note(f"history({kind!r}, {steps!r})")
            raise

    tried()


PLACE_PAIRS = [
    ("announced", None),
    ("committed", None),
    ("half confirmed", None),
    ("committed", "announced"),
    ("committed", "half confirmed"),
]


@pytest.mark.parametrize("places", PLACE_PAIRS)
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_killed_once_and_again(kind: str, places: tuple[str, str | None]) -> None:
    steps: list[Step] = [ROUND]
    for number, place in enumerate(places):
        steps += [("write", "o", "replace", 3 + number, 0, 1), ("round", place, False)]
    history(kind, [*steps, ROUND, ("save", "one.db"), ("restore", "one.db", True)])


@pytest.mark.parametrize("written", range(6))
def test_a_copy_that_is_put_over_an_open_file(written: int) -> None:
    """With as many transactions as the file had before, SQLite takes the pages that it has for the file's."""
    history(
        "sqlite",
        [
            ROUND,
            ("save", "one.db"),
            ("write", "o", "replace", 3, 0, 1),
            ("round", None, True),
            ("restore", "one.db", True),
            *[("write", "o", "replace", 10 + number, 0, 0) for number in range(written)],
        ],
    )


@pytest.mark.parametrize("file", ["one.db", "view.duckdb"])
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "delta"])
def test_as_many_changes_as_the_copy_lacks(kind: str, file: str) -> None:
    """Numbers and versions come again, with other rows."""

    def written(*row: int) -> Step:
        return ("write", "o", "replace", *row)

    lost = [ROUND, ("save", file), written(1, 1, 4), ROUND, ("restore", file, False)]
    history(kind, [*lost, written(2, 0, 3), written(3, 1, 1), ROUND, written(4, 1, 1)])
