"""Databases to maintain views over: real PostgreSQL servers, SQLite and DuckDB files, and their writers."""

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import duckdb
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg import sql

from kit.postgres import PostgresServers
from spillway.maintain.choice import PlanChooser
from spillway.maintain.definition import define_view
from spillway.maintain.execute import Answer
from spillway.maintain.reference import Bag, recompute
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.delta import DeltaServer
from spillway.maintain.sources.duckdb import DuckDbServer
from spillway.maintain.sources.postgres.server import PostgresServer
from spillway.maintain.sources.server import Cut, Server, SourceTable
from spillway.maintain.sources.sqlite import SqliteServer
from spillway.maintain.unify import KeySet
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.view import View

COLUMNS = ("a", "b", "c")
Row = tuple[int | None, int | None, str | None]


class Writer(Protocol):
    """Writes to the tables of one server, as an application would."""

    def create(self, table: str) -> None: ...
    def insert(self, table: str, row: Row) -> None: ...
    def delete(self, table: str, place: int) -> None: ...
    def update(self, table: str, place: int, row: Row) -> None: ...
    def rows(self, table: str) -> list[Row]: ...
    def begin_slow(self, table: str, row: Row) -> None: ...  # inserts in a transaction that goes on
    def commit_slow(self) -> None: ...
    def close(self) -> None: ...


class FileWriter:
    """SQLite or DuckDB: both address a row by its rowid."""

    def __init__(self, connection: Any, slow: Any) -> None:
        self._connection, self._slow, self._open = connection, slow, False

    def create(self, table: str) -> None:
        self._connection.execute(f'CREATE TABLE "{table}" (a BIGINT, b BIGINT, c TEXT)')

    def insert(self, table: str, row: Row) -> None:
        self._connection.execute(f'INSERT INTO "{table}" VALUES (?, ?, ?)', list(row))

    def delete(self, table: str, place: int) -> None:
        self._connection.execute(f'DELETE FROM "{table}" WHERE rowid = {self._rowid(table, place)}')

    def update(self, table: str, place: int, row: Row) -> None:
        self._connection.execute(
            f'UPDATE "{table}" SET a = ?, b = ?, c = ? WHERE rowid = {self._rowid(table, place)}', list(row)
        )

    def rows(self, table: str) -> list[Row]:
        return [tuple(row) for row in self._connection.execute(f'SELECT a, b, c FROM "{table}"').fetchall()]

    def begin_slow(self, table: str, row: Row) -> None:
        if self._slow is not None and not self._open:
            self._slow.execute("BEGIN")
            self._slow.execute(f'INSERT INTO "{table}" VALUES (?, ?, ?)', list(row))
            self._open = True

    def commit_slow(self) -> None:
        if self._open:
            self._slow.execute("COMMIT")
            self._open = False

    def close(self) -> None:
        self.commit_slow()
        for connection in (self._slow, self._connection):
            if connection is not None:
                connection.close()

    def _rowid(self, table: str, place: int) -> int:
        sql_text = f'SELECT rowid FROM "{table}" ORDER BY rowid LIMIT 1 OFFSET {place}'
        return int(self._connection.execute(sql_text).fetchall()[0][0])


class PostgresWriter:
    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._slow = psycopg.connect(dsn)

    def create(self, table: str) -> None:
        self._run("CREATE TABLE {} (a bigint, b bigint, c text)", table)

    def insert(self, table: str, row: Row) -> None:
        self._run("INSERT INTO {} VALUES (%s, %s, %s)", table, row)

    def delete(self, table: str, place: int) -> None:
        self._run(f"DELETE FROM {{0}} WHERE ctid = (SELECT ctid FROM {{0}} LIMIT 1 OFFSET {place})", table)

    def update(self, table: str, place: int, row: Row) -> None:
        picked = f"(SELECT ctid FROM {{0}} LIMIT 1 OFFSET {place})"
        self._run(f"UPDATE {{0}} SET a = %s, b = %s, c = %s WHERE ctid = {picked}", table, row)

    def rows(self, table: str) -> list[Row]:
        return self._run("SELECT a, b, c FROM {}", table).fetchall()

    def begin_slow(self, table: str, row: Row) -> None:
        self._slow.execute(sql.SQL("INSERT INTO {} VALUES (%s, %s, %s)").format(sql.Identifier(table)), row)

    def commit_slow(self) -> None:
        self._slow.commit()

    def close(self) -> None:
        self._slow.close()
        self._connection.close()

    def _run(self, text: str, table: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        return self._connection.execute(sql.SQL(text).format(sql.Identifier(table)), values)  # type: ignore


class DeltaWriter:
    """Every change is a version; there are no transactions that go on."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, table: str) -> None:
        write_deltalake(self._root / table, _arrow([]))

    def insert(self, table: str, row: Row) -> None:
        write_deltalake(self._root / table, _arrow([row]), mode="append")

    def delete(self, table: str, place: int) -> None:
        rows = self.rows(table)
        write_deltalake(self._root / table, _arrow(rows[:place] + rows[place + 1 :]), mode="overwrite")

    def update(self, table: str, place: int, row: Row) -> None:
        self.delete(table, place)
        self.insert(table, row)

    def rows(self, table: str) -> list[Row]:
        found = DeltaTable(self._root / table).to_pyarrow_table()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def begin_slow(self, *_: object) -> None: ...

    commit_slow = close = begin_slow


def _arrow(rows: Sequence[Row]) -> pa.Table:
    schema = pa.schema({"a": pa.int64(), "b": pa.int64(), "c": pa.string()})
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)


class Interfering:
    """A server that others write to before every answer; it remembers its tables at the last cut."""

    def __init__(self, server: Server, writer: Writer, tables: list[str], chance: random.Random) -> None:
        self.inner, self.writer, self.tables, self.chance = server, writer, tables, chance
        self.columns, self.install, self.resume = server.columns, server.install, server.resume
        self.forget, self.announce = server.forget, server.announce
        self.confirm, self.close = server.confirm, server.close
        self.at_cut: dict[str, list[Row]] = {}
        self.calm = False

    def load(self, relations: Sequence[SourceTable], at: str | None = None) -> Cut:
        cut = self.inner.load(relations, at)
        if at is None:
            self._remember()
        self.disturb()
        return cut

    def changes(self, relations: Sequence[SourceTable], since: str) -> Cut:
        cut = self.inner.changes(relations, since)
        self._remember()
        self.disturb()
        return cut

    def ask(self, relation: SourceTable, key_sets: Sequence[KeySet], vector: str) -> Answer:
        self.disturb()
        return self.inner.ask(relation, key_sets, vector)

    def disturb(self) -> None:
        if not self.calm:
            change(self.writer, self.chance.choice(self.tables), self.chance)

    def _remember(self) -> None:
        self.at_cut = {table: self.writer.rows(table) for table in self.tables}


def random_row(chance: random.Random) -> Row:
    value = lambda: chance.choice([None, 0, 1, 2])  # noqa: E731
    return value(), value(), chance.choice([None, "", "x", 'quoted "text", comma', "line\nbreak"])


def change(writer: Writer, table: str, chance: random.Random) -> None:
    """One insert, delete or update; or a step of the slow transaction."""
    count = len(writer.rows(table))
    kind = chance.choice(["insert", "delete", "update", "slow", "commit"])
    if kind == "slow":
        writer.begin_slow(table, random_row(chance))
    elif kind == "commit":
        writer.commit_slow()
    elif kind == "insert" or not count:
        writer.insert(table, random_row(chance))
    elif kind == "delete":
        writer.delete(table, chance.randrange(count))
    else:
        writer.update(table, chance.randrange(count), random_row(chance))


def bag(rows: Sequence[Row]) -> Bag:
    return Counter(tuple(zip(COLUMNS, row, strict=True)) for row in rows)


Opened = tuple[Server, Writer]
Open = Callable[[str, bool], Opened]


@pytest.fixture
def open_server(tmp_path: Path, postgres: PostgresServers) -> Iterator[Open]:
    """Opens a server of a kind, with a database of its own."""
    opened: list[Opened] = []

    def start(kind: str, cooperative: bool) -> Opened:
        name = f"d{uuid4().hex[:12]}"
        server: Server
        writer: Writer
        if kind.startswith("postgresql"):
            dsn = postgres.database(10 if kind.endswith("log") else 0)
            server, writer = PostgresServer(dsn, cooperative=cooperative, sub_batch=2), PostgresWriter(dsn)
        elif kind == "sqlite":
            path = tmp_path / f"{name}.sqlite"
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("PRAGMA journal_mode = wal")
            connection.execute("PRAGMA synchronous = off")
            server = SqliteServer(path, cooperative=cooperative, sub_batch=2)
            writer = FileWriter(connection, None)
        elif kind == "delta":
            (tmp_path / name).mkdir()
            server, writer = DeltaServer(tmp_path / name), DeltaWriter(tmp_path / name)
        else:
            root = duckdb.connect(str(tmp_path / f"{name}.duckdb"))
            server = DuckDbServer(root, cooperative=cooperative, sub_batch=2)
            writer = FileWriter(root, root.cursor())
        opened.append((server, writer))
        return server, writer

    yield start
    for server, writer in opened:
        server.close()
        writer.close()


class World:
    """A view over random tables on several servers, its manager, and all that writes to them."""

    def __init__(
        self,
        open_server: Open,
        kinds: Sequence[str],
        edges: Sequence[tuple[int, int, str]],
        inputs: int,
        chooser: PlanChooser,
        chance: random.Random,
        store: Path,
        cooperative: bool = True,
        where: str = "",
    ) -> None:
        self.chance = chance
        opened = [open_server(kind, cooperative) for kind in kinds]
        self.tables = [f"t{node}" for node in range(inputs)]
        self.homes = [TableLocation(f"s{node % len(kinds)}", self.tables[node]) for node in range(inputs)]
        for home in self.homes:
            opened[int(home.server[1:])][1].create(home.table)
        self.servers: dict[str, Interfering] = {
            f"s{number}": Interfering(
                server, writer, [h.table for h in self.homes if h.server == f"s{number}"], chance
            )
            for number, (server, writer) in enumerate(opened)
        }
        items = ", ".join(f"t{n}.{c} AS {c}{n}" for n in range(inputs) for c in COLUMNS)
        on = " AND ".join(
            " AND ".join(f"t{a}.{pair[0]} = t{b}.{pair[1]}" for pair in pairs.split())
            for a, b, pairs in edges
        )
        text = f"SELECT {items} FROM {', '.join(self.tables)} WHERE {on}{where}"
        catalog = {h.table: self.servers[h.server].columns(h.table) for h in self.homes}
        self.definition = define_view(View.sql(text), catalog)
        self.chooser, self.store_path = chooser, store
        self.store: ViewStore | None = None
        self.manager: ViewManager | None = None

    def start(self) -> ViewManager:
        """A manager over the stored view; also after `stop`."""
        names = [item.name for item in self.definition.outputs]
        self.store = ViewStore.open(self.store_path, self.definition.fingerprint, names)
        self.manager = ViewManager(self.definition, self.homes, self.servers, self.store, self.chooser)
        return self.manager

    def stop(self) -> None:
        if self.manager is not None and self.store is not None:
            self.manager.close()
            self.store.close()

    def write(self, changes: int) -> None:
        for _ in range(changes):
            home = self.chance.choice(self.homes)
            change(self.servers[home.server].writer, home.table, self.chance)

    def settle(self) -> None:
        """End the slow transactions."""
        for server in self.servers.values():
            server.writer.commit_slow()

    def calm(self, calm: bool = True) -> None:
        for server in self.servers.values():
            server.calm = calm

    def expected(self, keep: Callable[[tuple[Any, ...]], bool] = lambda _: True) -> Counter[tuple[Any, ...]]:
        """The view over the tables as they were at the last cut, by the slow and obvious join."""
        states = [bag(self.servers[home.server].at_cut[home.table]) for home in self.homes]
        joined: Counter[tuple[Any, ...]] = Counter()
        for wide, weight in recompute(self.definition.graph, states).items():
            row = tuple(value for values in wide if values is not None for _, value in values)
            if keep(row):
                joined[row] += weight
        return joined

    def stored(self) -> Counter[tuple[Any, ...]]:
        assert self.store is not None
        rows = [tuple(row.values()) for row in self.store.rows().to_pylist()]
        assert len({row[:-1] for row in rows}) == len(rows)
        return Counter({row[:-1]: row[-1] for row in rows})


@pytest.fixture
def world(open_server: Open, tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(kinds: Sequence[str], edges: Sequence[tuple[int, int, str]], inputs: int, **rest: Any) -> World:
        store = tmp_path / f"view-{uuid4().hex[:8]}.duckdb"
        made.append(World(open_server, kinds, edges, inputs, store=store, **rest))
        return made[-1]

    yield make
    for each_world in made:
        each_world.stop()
