"""Values and names that views meet: overflows, unsigned integers, empty tables, a column `_count`."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from spillway.cli.app import app
from spillway.errors import EvaluationError, SpillwayError
from spillway.job import read_maintain_job
from spillway.maintain import continuous
from spillway.maintain.continuous import run_rounds
from spillway.maintain.maintenance import open_maintenance
from spillway.maintain.round_report import RoundReport
from spillway.maintain.settings import MaintainJob

LARGEST = 2**63 - 1
TYPES = {"UTINYINT": 2**8 - 1, "USMALLINT": 2**16 - 1, "UINTEGER": 2**32 - 1, "UBIGINT": 2**64 - 1}


def write_job(directory: Path, kind: str, sql: str) -> Path:
    path = directory / "job.toml"
    path.write_text(
        f'[view]\nsql = """{sql}"""\n[servers.s]\nkind = "{kind}"\npath = "source.db"\n'
        '[sources.a]\nserver = "s"\n[sources.b]\nserver = "s"\n[maintain]\nstore = "view.duckdb"\n'
    )
    return path


def sqlite_job(directory: Path, sql: str) -> tuple[sqlite3.Connection, MaintainJob]:
    source = sqlite3.connect(directory / "source.db")
    source.executescript("CREATE TABLE a (k INTEGER, v INTEGER); CREATE TABLE b (k INTEGER, v INTEGER);")
    source.executescript("INSERT INTO a VALUES (1, 2); INSERT INTO b VALUES (1, 3);")
    return source, read_maintain_job(write_job(directory, "sqlite", sql))


def change(source: Any, sql: str) -> None:
    source.execute(sql)
    source.commit()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.v * b.v AS p FROM a JOIN b ON a.k = b.k",
        "SELECT a.v AS p FROM a JOIN b ON a.k = b.k WHERE a.v * a.v > 0",
        "SELECT a.v AS p FROM a JOIN b ON a.k = b.k WHERE a.v * b.v > 0",
        "SELECT a.k, sum(a.v * b.v) AS p FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_an_overflow_is_one_line_and_writes_nothing(tmp_path: Path, sql: str, first: bool) -> None:
    source, job = sqlite_job(tmp_path, sql)
    if first:
        change(source, f"INSERT INTO a VALUES (1, {LARGEST})")
        with open_maintenance(job) as maintenance, pytest.raises(EvaluationError, match="fails on a row"):
            maintenance.manager.start()
        return
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        before = maintenance.store.result()
        change(source, f"INSERT INTO a VALUES (1, {LARGEST})")
        with pytest.raises(EvaluationError) as caught:
            maintenance.manager.round()
        assert len(str(caught.value).splitlines()) == 1
        assert maintenance.store.result() == before
        change(source, f"DELETE FROM a WHERE v = {LARGEST}")
        change(source, "INSERT INTO a VALUES (1, 4)")
        assert maintenance.manager.round() is not None
        assert maintenance.manager.verify() == 0


def test_an_overflow_does_not_end_a_run_that_goes_on_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous, "LEAST_WAIT_SECONDS", 0.0)
    source, job = sqlite_job(tmp_path, "SELECT a.v * b.v AS p FROM a JOIN b ON a.k = b.k")
    stop, failures, reports = threading.Event(), list[str](), list[RoundReport]()

    def failed(error: SpillwayError) -> None:
        failures.append(str(error))
        change(source, f"DELETE FROM a WHERE v = {LARGEST}")
        change(source, "INSERT INTO a VALUES (1, 5)")

    def done(report: RoundReport) -> None:
        reports.append(report)
        stop.set()

    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        change(source, f"INSERT INTO a VALUES (1, {LARGEST})")
        run_rounds(
            maintenance.manager, forever=True, interval_seconds=0.0, stop=stop, done=done, failed=failed
        )
        assert sorted(maintenance.store.result()) == [(6, 1), (15, 1)]
    assert len(failures) == len(reports) == 1


def test_the_command_line_says_an_overflow_without_a_traceback(tmp_path: Path) -> None:
    source, _ = sqlite_job(tmp_path, "SELECT a.v * b.v AS p FROM a JOIN b ON a.k = b.k")
    change(source, f"INSERT INTO a VALUES (1, {LARGEST})")
    outcome = CliRunner().invoke(app, ["maintain", str(tmp_path / "job.toml")])
    assert outcome.exit_code != 0
    assert isinstance(outcome.exception, EvaluationError)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_unsigned_integers_of_duckdb(tmp_path: Path, kind: str) -> None:
    largest = TYPES[kind]

    def write(sql: str) -> None:
        with duckdb.connect(tmp_path / "source.db") as source:
            source.execute(sql)

    write(f"CREATE TABLE a (k {kind}, v {kind}); CREATE TABLE b (k {kind}, v {kind})")
    write(f"INSERT INTO a VALUES (1, {largest}), ({largest}, NULL); INSERT INTO b VALUES (1, 3)")
    sql = "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k"
    job = read_maintain_job(write_job(tmp_path, "duckdb", sql))
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        assert maintenance.store.result() == [(1, largest, 3, 1)]
    write(f"INSERT INTO b VALUES ({largest}, 7); DELETE FROM b WHERE k = 1")
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        assert maintenance.manager.round() is not None
        assert maintenance.store.result() == [(largest, None, 7, 1)]
        assert maintenance.manager.verify() == 0


@pytest.mark.parametrize(("name", "counted"), [("_count", "__count"), ("_COUNT", "__count"), ("n", "_count")])
def test_a_result_column_may_have_the_name_of_the_count(tmp_path: Path, name: str, counted: str) -> None:
    source, job = sqlite_job(tmp_path, f'SELECT a.v AS "{name}", b.v AS w FROM a JOIN b ON a.k = b.k')
    change(source, "INSERT INTO a VALUES (1, 2)")
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        assert maintenance.store.count_name == counted
    with duckdb.connect(tmp_path / "view.duckdb") as store:
        assert store.sql("FROM result").columns == [name, "w", counted]
        assert store.sql(f'SELECT "{name}", {counted} FROM result').fetchall() == [(2, 2)]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_empty_tables(tmp_path: Path, kind: str) -> None:
    connect: Callable[[Path], Any] = sqlite3.connect if kind == "sqlite" else duckdb.connect
    source = connect(tmp_path / "source.db")
    for table in "ab":
        source.execute(f"CREATE TABLE {table} (k INTEGER, t VARCHAR(9), d DOUBLE)")
    source.commit()
    source.close()
    sql = "SELECT a.k, b.t, a.d FROM a JOIN b ON a.k = b.k AND a.t = b.t"
    job = read_maintain_job(write_job(tmp_path, kind, sql))
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        assert maintenance.store.result() == []
    source = connect(tmp_path / "source.db")
    for table in "ab":
        source.execute(f"INSERT INTO {table} VALUES (1, 'x', 0.5)")
    source.commit()
    source.close()
    with open_maintenance(job) as maintenance:
        maintenance.manager.start()
        assert maintenance.manager.round() is not None
        assert maintenance.store.result() == [(1, "x", 0.5, 1)]
