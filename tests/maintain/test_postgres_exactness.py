"""PostgreSQL: a TRUNCATE under way, commits that a crash takes back, keys of any kind."""

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from kit.postgres import PostgresServers
from spillway.maintain.choice import choose_by_name
from spillway.maintain.definition import define_view
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.postgres.server import PostgresServer
from spillway.maintain.sources.server import SourceTable
from spillway.maintain.unify import KeySet
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.schema import Column
from spillway.model.view import View


@pytest.fixture(params=[0, 10], ids=["triggers", "log"])
def dsn(postgres: PostgresServers, request: pytest.FixtureRequest) -> str:
    """A database of its own on a server; changes come from triggers or from the log."""
    return postgres.database(request.param)


PAIR = SourceTable("pair", (Column("a", "bigint"), Column("b", "bigint")))
ONE_TO_NINE = KeySet((0,), pa.table({"c0": pa.array(range(1, 10), pa.int64())}))


def waiting_for_a_lock(connection: psycopg.Connection[Any]) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).fetchone()
    return found is not None and found[0] > 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", ["ask", "load"])
def test_an_answer_that_waits_for_a_truncate_knows_of_it(dsn: str, what: str) -> None:
    with (
        psycopg.connect(dsn) as writer,
        psycopg.connect(dsn, autocommit=True) as looker,
    ):
        writer.execute("CREATE TABLE pair (a bigint, b bigint)")
        writer.execute("INSERT INTO pair SELECT g, g FROM generate_series(1, 9) g")
        writer.commit()
        server = PostgresServer(dsn)
        server.install(["pair"], "reader")
        vector = server.load([PAIR]).vector
        server.announce(["pair"], "reader", None, vector)
        writer.execute("TRUNCATE pair")
        states: list[int] = []

        def read() -> None:
            if what == "ask":
                answer = server.ask(PAIR, [ONE_TO_NINE], vector)
                later = answer.later.column("weight").to_pylist()
                states.append(answer.rows[0].num_rows - sum(later))
            else:
                cut = server.load([PAIR], vector)
                states.append(sum(cut.deltas[0].column("weight").to_pylist()))

        reader = threading.Thread(target=read)
        reader.start()
        while not waiting_for_a_lock(looker):
            time.sleep(0.01)
        writer.commit()
        reader.join(30)
        server.close()
    assert states == [9], "the state at the vector has nine rows"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [2, 12], ids=["triggers", "log"])
def test_a_crash_takes_back_no_commit_that_the_view_stands_for(
    postgres: PostgresServers, tmp_path: Path, number: int
) -> None:
    dsn = postgres.dsn(number)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")  # asynchronous commits stay in memory
        connection.execute("ALTER SYSTEM SET synchronous_commit = 'off'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE TABLE l (a bigint, b bigint)")
        connection.execute("CREATE TABLE r (a bigint, b bigint)")
    server = PostgresServer(dsn, patience_seconds=30)
    catalog = {name: server.columns(name) for name in "lr"}
    definition = define_view(View.sql("SELECT l.b AS x, r.b AS y FROM l JOIN r ON l.a = r.a"), catalog)
    store = ViewStore.open(tmp_path / "view.duckdb", definition.fingerprint, ["x", "y"])
    manager = ViewManager(
        definition,
        [TableLocation("one", "l"), TableLocation("one", "r")],
        {"one": server},
        store,
        choose_by_name("conditional"),
    )
    manager.open()
    for row in range(3):
        with psycopg.connect(dsn) as connection:
            connection.execute("INSERT INTO l VALUES (%s, %s)", [row, row])
            connection.execute("INSERT INTO r VALUES (%s, %s)", [row, -row])
        assert manager.round() is not None
        os.kill(postgres(number).get_pid(), signal.SIGQUIT)
        time.sleep(0.2)
        postgres(number).ensure_postgres_running()
        with psycopg.connect(dsn) as connection:
            expected = connection.execute("SELECT l.b, r.b, 1 FROM l JOIN r ON l.a = r.a").fetchall()
        stored = [tuple(row.values()) for row in store.rows().to_pylist()]
        assert sorted(stored) == sorted(expected)
        assert len(stored) == row + 1
    assert manager.verify() == 0
    manager.close()
    store.close()
    server.close()


TYPES = {
    "boolean": "SELECT true UNION SELECT false",
    "smallint": "SELECT g FROM generate_series(-3, 3) g",
    "integer": "SELECT g * 700000000 FROM generate_series(-3, 3) g",
    "bigint": "SELECT g * 3000000000000000000 FROM generate_series(-3::bigint, 3) g",
    "numeric(20,4)": "SELECT g * 1234567.0001 FROM generate_series(-3, 3) g",
    "double precision": "SELECT unnest(array[0.0, '-0', 0.1, 1e300, 5e-324, 'NaN', 'Infinity', '-Infinity']"
    "::double precision[])",
    "text": "SELECT unnest(array['', 'NULL', 'null', '{a,b}', '\"q\"', '''', E'\\\\', E'\\\\\"', E'a\\nb', "
    "' x ', 'ü€😀', ',', E'tab\\t', '%s'])",
    "varchar(9)": "SELECT unnest(array['a', 'b c', ''])",
    "date": "SELECT '2024-02-28'::date + g FROM generate_series(0, 3) g",
    "timestamp": "SELECT '2024-02-28 23:59:59.999999'::timestamp + g * interval '1 hour' FROM "
    "generate_series(0, 3) g",
    "timestamptz": "SELECT '1960-02-28 23:59:59.999999+05:30'::timestamptz + g * interval '1 hour' FROM "
    "generate_series(0, 3) g",
}


@pytest.mark.parametrize("way", ["inline", "temporary table", "sub-batches"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_of_key_finds_its_rows(dsn: str, tmp_path: Path, kind: str, way: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table in "lr":
            connection.execute(f"CREATE TABLE {table} (k {kind}, id bigint)")
            connection.execute(
                f"INSERT INTO {table} SELECT k, row_number() OVER () FROM ({TYPES[kind]}) v(k)"
            )
            connection.execute(f"INSERT INTO {table} VALUES (NULL, 0)")
    server = PostgresServer(
        dsn, cooperative=way != "sub-batches", sub_batch=3, inline_keys=0 if way == "temporary table" else 99
    )
    catalog = {name: server.columns(name) for name in "lr"}
    definition = define_view(View.sql("SELECT l.id AS x, r.id AS y FROM l JOIN r ON l.k = r.k"), catalog)
    store = ViewStore.open(tmp_path / "view.duckdb", definition.fingerprint, ["x", "y"])
    manager = ViewManager(
        definition,
        [TableLocation("one", "l"), TableLocation("one", "r")],
        {"one": server},
        store,
        choose_by_name("batch"),
    )
    manager.open()
    chance = random.Random(1)
    for _ in range(2):
        with psycopg.connect(dsn, autocommit=True) as connection:
            for table in "lr":
                connection.execute(f"INSERT INTO {table} SELECT k, 100 + id FROM {table} WHERE id % 2 = 0")
                connection.execute(f"DELETE FROM {table} WHERE id = {chance.randrange(1, 4)}")
            expected = connection.execute(
                "SELECT l.id, r.id, count(*) FROM l JOIN r ON l.k = r.k GROUP BY 1, 2"
            ).fetchall()
        assert manager.round() is not None
        assert sorted(tuple(row.values()) for row in store.rows().to_pylist()) == sorted(expected)
        assert manager.verify() == 0
    manager.close()
    store.close()
    server.close()
