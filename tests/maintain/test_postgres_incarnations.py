"""PostgreSQL databases that are recreated, restored or lose a slot: a round asks for a reload."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kit.postgres import PostgresServers
from spillway.errors import IncarnationError
from spillway.job import Document
from spillway.maintain.maintenance import open_maintenance
from spillway.maintain.settings import MaintainJob

FEEDS = {"triggers": 0, "logical": 10}


class Place:
    """Two tables of a database, and a view over them."""

    def __init__(self, dsn: str, root: Path, feed: str) -> None:
        self.dsn, self._root, self._feed = dsn, root, feed
        self.run("CREATE TABLE l (a bigint, b bigint)", "CREATE TABLE r (a bigint, b bigint)")
        self.run("INSERT INTO l VALUES (1, 1), (2, 2)", "INSERT INTO r VALUES (1, 10), (2, 20)")
        self.maintain()

    @property
    def job(self) -> MaintainJob:
        document = {
            "view": {"sql": "SELECT l.b AS x, r.b AS y FROM l JOIN r ON l.a = r.a"},
            "servers": {"one": {"kind": "postgresql", "dsn": self.dsn, "feed": self._feed}},
            "sources": {"l": {"server": "one"}, "r": {"server": "one"}},
            "maintain": {"store": "view.duckdb", "strategy": "conditional"},
        }
        return Document(document, self._root).maintain_job()

    def run(self, *statements: str) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursors = [connection.execute(statement) for statement in statements]
            return cursors[-1].fetchall() if cursors[-1].description else []

    def maintain(self, *, reload: bool = False) -> None:
        """A round, after which the view is right."""
        with open_maintenance(self.job, replace=reload) as maintenance:
            if reload:
                maintenance.manager.reload()
            maintenance.manager.start()
            maintenance.manager.round()
            stored = sorted(maintenance.store.result())
        expected = self.run("SELECT l.b, r.b, count(*) FROM l JOIN r ON l.a = r.a GROUP BY 1, 2")
        assert stored == sorted(expected)

    def must_ask_for_a_reload(self) -> None:
        with pytest.raises(IncarnationError, match="--reload") as raised:
            self.maintain()
        assert "\n" not in str(raised.value)
        self.maintain(reload=True)
        self.run("INSERT INTO l VALUES (1, 77)", "DELETE FROM r WHERE a = 2")
        self.maintain()


@pytest.fixture(params=FEEDS)
def place(request: pytest.FixtureRequest, postgres: PostgresServers, tmp_path: Path) -> Iterator[Place]:
    found = Place(postgres.database(FEEDS[request.param]), tmp_path, request.param)
    yield found
    with open_maintenance(found.job, replace=True) as maintenance:
        maintenance.manager.forget()


@pytest.mark.parametrize("written", [0, 3])
def test_a_table_that_was_dropped_and_recreated(place: Place, written: int) -> None:
    place.run("DROP TABLE l", "CREATE TABLE l (a bigint, b bigint)")
    for number in range(written):
        place.run(f"INSERT INTO l VALUES (1, {number})")
    place.must_ask_for_a_reload()


def test_a_database_that_a_copy_took_the_place_of(place: Place) -> None:
    """A copy has all that the first one had, and as much time; only a slot stays with its database."""
    name = place.dsn.split("/")[3].split("?")[0]
    home = place.dsn.replace(f"/{name}?", "/postgres?")
    with psycopg.connect(home, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}c TEMPLATE {name}")
    place.run("INSERT INTO l VALUES (1, 5)")
    place.maintain()
    place.dsn = place.dsn.replace(f"/{name}?", f"/{name}c?")
    place.run("INSERT INTO l VALUES (1, 6)")
    place.must_ask_for_a_reload()


def test_what_records_the_changes_is_taken_away(place: Place) -> None:
    place.run("INSERT INTO l VALUES (1, 5)")
    if place._feed == "logical":
        place.run(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE database = current_database()"
        )
    else:
        place.run("ALTER TABLE l DISABLE TRIGGER spillway_insert")
    place.run("INSERT INTO l VALUES (1, 6)")
    place.must_ask_for_a_reload()


def test_a_table_that_left_the_publication(place: Place) -> None:
    if place._feed == "logical":
        ((name,),) = place.run("SELECT pubname FROM pg_publication")
        place.run(f"ALTER PUBLICATION {name} DROP TABLE l", "INSERT INTO l VALUES (1, 5)")
    else:
        place.run("DROP SCHEMA spillway CASCADE", "INSERT INTO l VALUES (1, 5)")
    place.must_ask_for_a_reload()


def test_an_older_copy_of_the_store(place: Place, tmp_path: Path) -> None:
    shutil.copyfile(tmp_path / "view.duckdb", tmp_path / "copy")
    place.run("INSERT INTO l VALUES (1, 5)")
    place.maintain()
    shutil.copyfile(tmp_path / "copy", tmp_path / "view.duckdb")
    place.run("INSERT INTO l VALUES (1, 6)")
    place.must_ask_for_a_reload()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("feed", "number"), [("triggers", 2), ("logical", 12)])
def test_an_older_copy_of_the_whole_server(
    postgres: PostgresServers, tmp_path: Path, feed: str, number: int
) -> None:
    """The files of a stopped server are all there is: the same ids come again, with other rows."""
    dsn = postgres.database(number)
    with psycopg.connect(dsn) as connection:
        ((files,),) = connection.execute("SHOW data_directory").fetchall()
    place = Place(dsn, tmp_path, feed)
    place.run("INSERT INTO l VALUES (1, 4)")
    place.maintain()

    def stopped(work: Callable[[], object]) -> None:
        pid = postgres(number).get_pid()
        os.kill(pid, signal.SIGINT)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.02)
        work()
        postgres(number).ensure_postgres_running()

    def restored() -> None:
        for found in Path(files).iterdir():
            shutil.rmtree(found) if found.is_dir() else found.unlink()
        subprocess.run(["cp", "-a", f"{tmp_path}/server/.", files], check=True)  # with owners and rights

    stopped(lambda: subprocess.run(["cp", "-a", files, tmp_path / "server"], check=True))
    place.run("INSERT INTO l VALUES (1, 5)", "INSERT INTO l VALUES (1, 6)")
    place.maintain()
    stopped(restored)
    for value in range(10, 14):
        place.run(f"INSERT INTO l VALUES (1, {value})")
    place.must_ask_for_a_reload()
    with open_maintenance(place.job, replace=True) as maintenance:
        maintenance.manager.forget()
