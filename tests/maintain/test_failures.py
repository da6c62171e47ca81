"""Kills in the middle of a round, of the manager or of a server: the view is right afterwards."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from kit.postgres import PostgresServers
from spillway.errors import SourceError
from spillway.job import read_maintain_job
from spillway.maintain.choice import FixedChoice
from spillway.maintain.definition import define_view
from spillway.maintain.maintenance import open_maintenance
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.postgres.server import PostgresServer
from spillway.maintain.strategies.registry import plan_round
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.view import View

CHILD = Path(__file__).parent / "doomed_manager.py"
JOB = """
[view]
sql = "SELECT a.x AS x, b.y AS y, c.z AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.y = c.y"
[servers.one]
kind = "sqlite"
path = "one.sqlite"
[sources.a]
server = "one"
[sources.b]
server = "one"
[sources.c]
server = "one"
[maintain]
store = "view.duckdb"
strategy = "conditional"
"""


def fill(connection: sqlite3.Connection, seed: int) -> None:
    chance = random.Random(seed)
    for table in "abc":
        rows = [(chance.randrange(9), chance.randrange(9)) for _ in range(20)]
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
        connection.execute(f"DELETE FROM {table} WHERE rowid % 7 = {seed % 7}")
    connection.commit()


@pytest.mark.parametrize("place", ["ask", "apply", "confirm"])
def test_a_killed_manager_goes_on_and_applies_nothing_twice(tmp_path: Path, place: str) -> None:
    source = sqlite3.connect(tmp_path / "one.sqlite")
    source.executescript(
        "CREATE TABLE a (k INTEGER, x INTEGER); CREATE TABLE b (k INTEGER, y INTEGER);"
        "CREATE TABLE c (y INTEGER, z INTEGER);"
    )
    fill(source, 1)
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    with open_maintenance(read_maintain_job(job)) as maintenance:
        maintenance.manager.start()
    fill(source, 2)
    child = subprocess.run([sys.executable, CHILD, job, place], timeout=60, check=False, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    with open_maintenance(read_maintain_job(job)) as maintenance:
        maintenance.manager.start()
        state = maintenance.store.state()
        assert state is not None
        assert state.round == (1 if place == "confirm" else 0)
        fill(source, 3)
        assert maintenance.manager.round() is not None
        assert maintenance.manager.verify() == 0
    expected = source.execute(
        "SELECT a.x, b.y, c.z, count(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.y = c.y GROUP BY 1, 2, 3"
    ).fetchall()
    source.close()
    with duckdb.connect(str(tmp_path / "view.duckdb"), read_only=True) as store:
        assert sorted(store.execute("FROM result").fetchall()) == sorted(expected)


class Chain:
    """Four tables on two PostgreSQL servers, joined in a chain, and a manager of that view."""

    def __init__(self, dsns: list[str], store: Path, patience_seconds: float = 30.0) -> None:
        self.dsns = dsns
        self.homes = [TableLocation(f"s{node % 2}", f"q{node}") for node in range(4)]
        for node, home in enumerate(self.homes):
            with psycopg.connect(self.dsn(home)) as connection:
                connection.execute(f"CREATE TABLE q{node} (a int, b bigint, t timestamptz DEFAULT now())")
                connection.execute(f"INSERT INTO q{node} SELECT g % 15, g % 11 FROM generate_series(1, 40) g")
        self.servers = {
            f"s{n}": PostgresServer(dsn, patience_seconds=patience_seconds) for n, dsn in enumerate(dsns)
        }
        sql = "SELECT q0.a AS x, q1.b AS y, q2.t AS t, q3.b AS z FROM q0 JOIN q1 ON q0.b = q1.a"
        sql += " JOIN q2 ON q1.b = q2.b JOIN q3 ON q2.a = q3.a"
        catalog = {home.table: self.servers[home.server].columns(home.table) for home in self.homes}
        self.definition = define_view(View.sql(sql), catalog)
        self.store = ViewStore.open(store, self.definition.fingerprint, ["x", "y", "t", "z"])
        self.strategy = "conditional"
        self.manager = ViewManager(
            self.definition,
            self.homes,
            self.servers,
            self.store,
            FixedChoice(lambda graph, sizes: plan_round(self.strategy, graph, sizes)),
        )

    def dsn(self, home: TableLocation) -> str:
        return self.dsns[int(home.server[1:])]

    def write_until(self, stop: threading.Event, seed: int) -> None:
        """Short and long transactions over one or two tables of a server, some of them rolled back."""
        chance = random.Random(seed)
        connections = [psycopg.connect(dsn) for dsn in self.dsns]
        try:
            while not stop.is_set():
                side = chance.randrange(2)
                connection = connections[side]
                for node in chance.sample([side, side + 2], chance.choice([1, 2])):
                    connection.execute(
                        f"INSERT INTO q{node} (a, b) VALUES (%s, %s)",
                        [chance.randrange(15), chance.randrange(11)],
                    )
                    connection.execute(
                        f"UPDATE q{node} SET b = %s WHERE ctid = (SELECT ctid FROM q{node} "
                        "OFFSET floor(random() * 30) LIMIT 1 FOR UPDATE SKIP LOCKED)",
                        [chance.randrange(11)],
                    )
                    connection.execute(
                        f"DELETE FROM q{node} WHERE ctid = (SELECT ctid FROM q{node} "
                        "OFFSET floor(random() * 30) LIMIT 1 FOR UPDATE SKIP LOCKED)"
                    )
                    if chance.random() < 0.2:
                        stop.wait(0.15)  # a long transaction, which others overtake
                if chance.random() < 0.15:
                    connection.rollback()
                else:
                    connection.commit()
        finally:
            for connection in connections:
                connection.close()

    def expected(self) -> list[tuple[Any, ...]]:
        """The join, computed by DuckDB from what the servers hold now."""
        with duckdb.connect() as base:
            for node, home in enumerate(self.homes):
                with psycopg.connect(self.dsn(home)) as connection:
                    rows = connection.execute(
                        f"SELECT a, b, extract(epoch FROM t)::text FROM q{node}"
                    ).fetchall()
                base.execute(f"CREATE TABLE q{node} (a BIGINT, b BIGINT, t VARCHAR)")
                base.executemany(f"INSERT INTO q{node} VALUES (?, ?, ?)", rows)
            return base.execute(
                "SELECT q0.a, q1.b, q2.t::DECIMAL(38, 6), q3.b, count(*) FROM q0 JOIN q1 ON q0.b = q1.a "
                "JOIN q2 ON q1.b = q2.b JOIN q3 ON q2.a = q3.a GROUP BY ALL ORDER BY ALL"
            ).fetchall()

    def stored(self) -> list[tuple[Any, ...]]:
        with duckdb.connect() as base:
            base.register("stored", self.store.rows())
            return base.execute(
                "SELECT o0, o1, (epoch_us(o2)::DECIMAL(38, 6) / 1000000)::DECIMAL(38, 6), o3, weight "
                "FROM stored ORDER BY ALL"
            ).fetchall()

    def close(self) -> None:
        self.manager.close()
        self.store.close()
        for server in self.servers.values():
            server.close()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("number", "feed"), [(1, "triggers"), (11, "logical")])
def test_several_writers_with_long_and_short_transactions(
    postgres: PostgresServers, tmp_path: Path, number: int, feed: str
) -> None:
    chain = Chain([postgres.dsn(number), postgres.dsn(0)], tmp_path / "view.duckdb")
    try:
        chain.manager.open()
        assert [server.feed for server in chain.servers.values()] == [feed, "triggers"]
        stop = threading.Event()
        writers = [threading.Thread(target=chain.write_until, args=(stop, seed)) for seed in range(3)]
        for writer in writers:
            writer.start()
        try:
            for strategy in ("conditional", "batch", "graph-transform"):
                chain.strategy = strategy
                while chain.manager.round() is None:
                    stop.wait(0.01)  # nobody has committed anything yet
                assert chain.manager.verify() == 0, strategy  # while they go on writing
        finally:
            stop.set()
            for writer in writers:
                writer.join(30)
        chain.manager.round()
        assert chain.stored() == chain.expected()
    finally:
        drop(chain)


def drop(chain: Chain) -> None:
    chain.manager.forget()
    chain.close()
    for home in chain.homes:
        with psycopg.connect(chain.dsn(home)) as connection:
            connection.execute(f"DROP TABLE {home.table} CASCADE")
            connection.execute("DROP SCHEMA IF EXISTS spillway CASCADE")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [1, 11], ids=["triggers", "log"])
@pytest.mark.parametrize("place", ["changes", "first ask", "second ask", "last ask", "confirm"])
def test_a_postgresql_server_killed_and_restarted_in_a_round(
    postgres: PostgresServers, tmp_path: Path, place: str, number: int
) -> None:
    chain = Chain([postgres.dsn(number), postgres.dsn(0)], tmp_path / "view.duckdb")
    try:
        chain.manager.open()
        for home in chain.homes:
            with psycopg.connect(chain.dsn(home)) as connection:
                connection.execute(
                    f"INSERT INTO {home.table} (a, b) SELECT g % 15, g % 11 FROM generate_series(1, 9) g"
                )
                connection.execute(f"DELETE FROM {home.table} WHERE a = 3")
        method = place.split()[-1]
        at_call = {"second ask": 2, "last ask": 3}.get(place, 1)
        real, calls = getattr(chain.servers["s0"], method), []
        restarted: list[threading.Thread] = []

        def doomed(*words: Any) -> Any:
            calls.append(1)
            if len(calls) == at_call:
                pid = postgres(number).get_pid()
                os.kill(pid, signal.SIGQUIT)  # at once, as in a crash; the next start recovers
                restarted.append(threading.Thread(target=restart))
                restarted[0].start()
            return real(*words)

        def restart() -> None:
            time.sleep(0.3)
            postgres(number).ensure_postgres_running()

        setattr(chain.servers["s0"], method, doomed)
        report = chain.manager.round()
        assert restarted
        restarted[0].join(60)
        assert report is not None
        assert report.queries == 6
        assert chain.stored() == chain.expected()
        assert chain.manager.verify() == 0
        assert chain.manager.round() is None, "nothing is applied twice"
        assert chain.stored() == chain.expected()
    finally:
        drop(chain)


def test_a_server_that_stays_away_ends_the_round_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="PostgreSQL server: ") as raised:
        PostgresServer(f"host={tmp_path} dbname=none connect_timeout=2", patience_seconds=0.1)
    assert "\n" not in str(raised.value)
