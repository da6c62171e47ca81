"""The manager is killed at any moment, again and again, while others write to two PostgreSQL servers."""

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import psycopg
import pytest

from kit.postgres import PostgresServers
from spillway.job import read_maintain_job
from spillway.maintain.maintenance import open_maintenance

CHILD = Path(__file__).parent / "busy_manager.py"
VIEW = "SELECT a.x AS x, b.y AS y, c.y AS z FROM a JOIN b ON a.y = b.x JOIN c ON b.y = c.x"
JOB = f"""
[view]
sql = "{VIEW}"
[servers.one]
kind = "postgresql"
dsn = "ONE"
[servers.two]
kind = "postgresql"
dsn = "TWO"
cooperative = false
[sources.a]
server = "one"
[sources.b]
server = "two"
[sources.c]
server = "one"
[maintain]
store = "view.duckdb"
strategy = "conditional"
"""


@pytest.fixture(params=[0, 10], ids=["triggers", "log"])
def dsns(postgres: PostgresServers, request: pytest.FixtureRequest) -> list[str]:
    return [postgres.database(number) for number in (request.param, request.param + 1)]


def write_until(stop: threading.Event, dsn: str, tables: str, seed: int) -> None:
    chance = random.Random(seed)
    with psycopg.connect(dsn) as connection:
        while not stop.is_set():
            for table in tables:
                row = [chance.randrange(40), chance.randrange(40)]
                connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", row)
                connection.execute(f"UPDATE {table} SET y = %s WHERE x = %s", [row[1], chance.randrange(40)])
                connection.execute(f"DELETE FROM {table} WHERE x = %s", [chance.randrange(40)])
            stop.wait(chance.random() * 0.02)
            connection.commit() if chance.random() < 0.9 else connection.rollback()


@pytest.mark.timeout(180)
def test_killed_at_any_moment(dsns: list[str], tmp_path: Path) -> None:
    for dsn, tables in zip(dsns, ("ac", "b"), strict=True):
        with psycopg.connect(dsn) as connection:
            for table in tables:
                connection.execute(f"CREATE TABLE {table} (x int, y int)")
                connection.execute(
                    f"INSERT INTO {table} SELECT g % 40, g * 7 % 40 FROM generate_series(1, 80) g"
                )
    job = tmp_path / "job.toml"
    job.write_text(JOB.replace("ONE", dsns[0]).replace("TWO", dsns[1]))
    stop, chance = threading.Event(), random.Random(5)
    writers = [
        threading.Thread(target=write_until, args=(stop, dsns[side], tables, seed))
        for seed, (side, tables) in enumerate([(0, "ac"), (1, "b"), (0, "c")])
    ]
    for writer in writers:
        writer.start()
    try:
        rounds = []
        for _ in range(5):
            with subprocess.Popen([sys.executable, CHILD, job], stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n"
                assert child.stdout.readline() == "round\n"
                time.sleep(chance.random() * 0.4)
                child.kill()
            with open_maintenance(read_maintain_job(job)) as maintenance:
                state = maintenance.store.state()
                assert state is not None
                rounds.append(state.round)
                assert maintenance.manager.verify() == 0
    finally:
        stop.set()
        for writer in writers:
            writer.join(30)
    assert rounds == sorted(rounds)
    assert rounds[-1] >= 5, "hardly a round was committed between the kills"
    with open_maintenance(read_maintain_job(job)) as maintenance:
        maintenance.manager.start()
        maintenance.manager.round()
        stored = [tuple(row.values()) for row in maintenance.store.rows().to_pylist()]
    with duckdb.connect() as base:
        for dsn, tables in zip(dsns, ("ac", "b"), strict=True):
            with psycopg.connect(dsn) as connection:
                for table in tables:
                    base.execute(f"CREATE TABLE {table} (x INTEGER, y INTEGER)")
                    base.executemany(
                        f"INSERT INTO {table} VALUES (?, ?)",
                        connection.execute(f"SELECT x, y FROM {table}").fetchall(),
                    )
        expected = base.execute(f"SELECT x, y, z, count(*) FROM ({VIEW}) GROUP BY ALL").fetchall()
    assert sorted(stored) == sorted(expected)
    assert stored
