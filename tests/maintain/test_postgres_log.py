"""Changes from PostgreSQL's log: what a slot gives, when it moves, and who decides what a snapshot saw."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

from kit.postgres import PostgresServers
from spillway.errors import IncarnationError, SourceError
from spillway.maintain.sources.postgres.server import PostgresServer
from spillway.maintain.sources.server import SourceTable
from spillway.maintain.unify import KeySet
from spillway.model.schema import Column

TABLE = SourceTable("Odd Name", (Column("c", "string"), Column("a", "bigint"), Column("b", "double")))
SLOTS = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"


@pytest.fixture
def dsn(postgres: PostgresServers) -> str:
    return postgres.database(10)


@pytest.fixture
def writer(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            'CREATE TABLE "Odd Name" (a bigint, unread int DEFAULT 7, b double precision, c text)'
        )
        connection.execute("""INSERT INTO "Odd Name" (a, c) VALUES (1, 'one'), (2, NULL)""")
        yield connection


@pytest.fixture
def server(dsn: str, writer: psycopg.Connection[Any]) -> Iterator[PostgresServer]:
    opened = PostgresServer(dsn)
    opened.install(["Odd Name"], "reader")
    assert opened.feed == "logical"
    yield opened
    opened.forget(["Odd Name"], "reader")
    opened.close()


def loaded(server: PostgresServer, reader: str = "reader") -> str:
    """The vector of a load that is committed."""
    vector = server.load([TABLE]).vector
    server.announce(["Odd Name"], reader, None, vector)
    server.confirm(["Odd Name"], reader, vector)
    return vector


def bag(delta: pa.Table) -> Counter[tuple[Any, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for *row, weight in zip(*(column.to_pylist() for column in delta.columns), strict=True):
        counts[tuple(row)] += weight
    return Counter({row: weight for row, weight in counts.items() if weight})


def test_every_kind_of_change(server: PostgresServer, writer: psycopg.Connection[Any]) -> None:
    start = loaded(server)
    long = "x" * 5 + uuid4().hex * 3000  # stored apart from its row
    writer.execute("""ALTER TABLE "Odd Name" ALTER c SET STORAGE EXTERNAL""")
    writer.execute("""INSERT INTO "Odd Name" VALUES (3, 0, '-0', 'tab\t"quote"'), (4, 0, 'Infinity', '')""")
    writer.execute("""INSERT INTO "Odd Name" (a, c) VALUES (5, %s)""", [long])
    writer.execute("""UPDATE "Odd Name" SET b = 0.1 WHERE a = 5""")  # leaves the long text where it is
    writer.execute("""UPDATE "Odd Name" SET c = NULL, a = a + 10 WHERE a < 3""")
    writer.execute("""DELETE FROM "Odd Name" WHERE a = 4""")
    with writer.transaction():
        writer.execute("""INSERT INTO "Odd Name" (a) VALUES (99)""")
        with pytest.raises(ZeroDivisionError), writer.transaction():
            writer.execute("""DELETE FROM "Odd Name" """)
            raise ZeroDivisionError  # only the inner transaction is rolled back
    cut = server.changes([TABLE], start)
    wanted = {
        ("one", 1, None): -1, (None, 2, None): -1, (None, 11, None): 1, (None, 12, None): 1,
        ('tab\t"quote"', 3, -0.0): 1, (long, 5, 0.1): 1, (None, 99, None): 1,
    }  # fmt: skip
    assert bag(cut.deltas[0]) == Counter(wanted)
    assert cut.age_seconds is not None
    assert 0 <= cut.age_seconds < 60
    before = server.load([TABLE], start)
    assert bag(before.deltas[0]) == Counter({("one", 1, None): 1, (None, 2, None): 1})


def test_rows_that_truncate_takes(server: PostgresServer, writer: psycopg.Connection[Any]) -> None:
    start = loaded(server)
    with writer.transaction():
        writer.execute("""INSERT INTO "Odd Name" (a) VALUES (3)""")
        writer.execute("""TRUNCATE "Odd Name" """)
        writer.execute("""INSERT INTO "Odd Name" (a) VALUES (4)""")
    cut = server.changes([TABLE], start)
    assert bag(cut.deltas[0]) == Counter({("one", 1, None): -1, (None, 2, None): -1, (None, 4, None): 1})
    keys = KeySet((1,), pa.table({"c1": pa.array([1, 4], pa.int64())}))
    answer = server.ask(TABLE, [keys], start)
    assert answer.rows[0].num_rows == 1
    assert bag(answer.later) == bag(cut.deltas[0])
    server.announce(["Odd Name"], "reader", start, cut.vector)
    writer.execute("""TRUNCATE "Odd Name" """)
    assert bag(server.changes([TABLE], cut.vector).deltas[0]) == Counter({(None, 4, None): -1})


@pytest.mark.timeout(60)
def test_commits_that_become_visible_in_another_order(
    dsn: str, server: PostgresServer, writer: psycopg.Connection[Any]
) -> None:
    """A commit that waits for a standby is in the log before others that are visible at once."""
    start = loaded(server)

    def commit_slowly() -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("""INSERT INTO "Odd Name" (a) VALUES (100)""")

    writer.execute("SET synchronous_commit = local")
    writer.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    writer.execute("SELECT pg_reload_conf()")
    slow = threading.Thread(target=commit_slowly)
    try:
        while writer.execute("SHOW synchronous_standby_names").fetchone() != ("nobody",):
            time.sleep(0.01)
        time.sleep(0.2)  # the setting has reached the process that tells sessions to wait
        slow.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while writer.execute(waiting).fetchone() != (1,):
            time.sleep(0.01)
        writer.execute("""INSERT INTO "Odd Name" (a) VALUES (200)""")
        cut = server.changes([TABLE], start)
        assert bag(cut.deltas[0]) == Counter({(None, 200, None): 1}), "the earlier commit is not visible"
        server.announce(["Odd Name"], "reader", start, cut.vector)
        server.confirm(["Odd Name"], "reader", cut.vector)
        again = server.changes([TABLE], cut.vector)
        assert not again.deltas[0].num_rows
        server.confirm(["Odd Name"], "reader", again.vector)
    finally:
        writer.execute("ALTER SYSTEM RESET synchronous_standby_names")
        writer.execute("SELECT pg_reload_conf()")
        slow.join(30)
    late = server.changes([TABLE], again.vector)
    assert bag(late.deltas[0]) == Counter({(None, 100, None): 1}), "the slot went past a commit"


def test_the_slot_moves_when_the_reader_has_committed(
    dsn: str, server: PostgresServer, writer: psycopg.Connection[Any]
) -> None:
    place = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
    start = loaded(server)
    writer.execute("""INSERT INTO "Odd Name" (a) VALUES (3)""")
    first = writer.execute(place).fetchone()
    cut = server.changes([TABLE], start)
    assert writer.execute(place).fetchone() == first
    other = PostgresServer(dsn)  # a manager that was killed before it confirmed goes on
    server.close()
    other.resume(["Odd Name"], "reader")
    other.announce(["Odd Name"], "reader", start, cut.vector)
    assert other.feed == "logical"
    assert bag(other.changes([TABLE], start).deltas[0]) == bag(cut.deltas[0])
    assert not other.changes([TABLE], cut.vector).deltas[0].num_rows, "it was given twice, and counts once"
    writer.execute("""INSERT INTO "Odd Name" (a) VALUES (4)""")
    later = other.changes([TABLE], cut.vector)
    assert bag(later.deltas[0]) == Counter({(None, 4, None): 1})
    before = writer.execute(place).fetchone()
    other.announce(["Odd Name"], "reader", cut.vector, later.vector)
    other.confirm(["Odd Name"], "reader", later.vector)
    assert writer.execute(place).fetchone() != before
    moved = writer.execute(place).fetchone()
    writer.execute("CREATE TABLE elsewhere AS SELECT g FROM generate_series(1, 1000) g")
    assert not other.changes([TABLE], later.vector).deltas[0].num_rows
    assert writer.execute(place).fetchone() != moved, "work on other tables would keep the log for ever"
    other.close()


@pytest.mark.parametrize("feed", ["logical", "triggers"])
def test_forgetting_leaves_nothing_behind(dsn: str, writer: psycopg.Connection[Any], feed: str) -> None:
    left = (
        "SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE nspname = 'spillway' AND relkind = 'r') + "
        "(SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal) + "
        "(SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace "
        f"WHERE nspname = 'spillway') + ({SLOTS})"
    )
    server = PostgresServer(dsn, feed=feed)
    for reader in ("one", "two"):
        server.install(["Odd Name"], reader)
        assert server.feed == feed
    server.forget(["Odd Name"], "two")
    server.resume(["Odd Name"], "one")
    assert server.feed == feed
    start = loaded(server, "one")
    writer.execute("""TRUNCATE "Odd Name" """)
    assert server.changes([TABLE], start).deltas[0].num_rows == 2, "the other reader still has its changes"
    assert writer.execute(left).fetchone() != (0,)
    server.forget(["Odd Name"], "one")
    assert writer.execute(left).fetchone() == (0,)
    server.resume(["Odd Name"], "one")
    with pytest.raises(IncarnationError, match="--reload"):
        server.changes([TABLE], start)
    server.close()


def test_logical_decoding_that_is_not_possible(
    dsn: str, writer: psycopg.Connection[Any], postgres: PostgresServers
) -> None:
    plain = PostgresServer(postgres.dsn(0), feed="logical")
    with pytest.raises(SourceError, match="wal_level is replica, not logical"):
        plain.install([], "reader")
    plain.close()
    writer.execute("CREATE TABLE parts (a int) PARTITION BY LIST (a)")
    server = PostgresServer(dsn)
    server.install(["parts"], "reader")
    assert server.feed == "triggers"
    server.forget(["parts"], "reader")
    server.close()


def test_a_table_that_lost_its_identity_is_not_read_on(
    server: PostgresServer, writer: psycopg.Connection[Any]
) -> None:
    start = loaded(server)
    writer.execute("""ALTER TABLE "Odd Name" ADD PRIMARY KEY (a)""")
    writer.execute("""ALTER TABLE "Odd Name" REPLICA IDENTITY DEFAULT""")
    writer.execute("""UPDATE "Odd Name" SET c = 'changed' WHERE a = 1""")
    with pytest.raises(SourceError, match="REPLICA IDENTITY FULL"):
        server.changes([TABLE], start)
