"""What views leave in their sources: nothing after --forget, nothing for a store that was deleted."""

import json
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit.commands import Call

JOB = """
[view]
sql = "SELECT a.x AS x, b.y AS y FROM a JOIN b ON a.k = b.k"
[servers.one]
kind = "sqlite"
path = "one.sqlite"
[servers.two]
kind = "duckdb"
path = "two.duckdb"
[sources.a]
server = "one"
[sources.b]
server = "two"
table = "stage.b"
[maintain]
store = "view.duckdb"
strategy = "batch"
"""


@pytest.fixture
def maintain(call: Call, tmp_path: Path) -> Call:
    (tmp_path / "job.toml").write_text(JOB)
    sqlite(tmp_path, "CREATE TABLE a (k INTEGER, x INTEGER)", "INSERT INTO a VALUES (1, 1), (2, 2)")
    duck(
        tmp_path,
        "CREATE SCHEMA stage; CREATE TABLE stage.b (k BIGINT PRIMARY KEY, y BIGINT)",
        "CREATE TABLE b (k BIGINT, y BIGINT, other VARCHAR)",
        "INSERT INTO stage.b VALUES (1, 10), (2, 20); INSERT INTO b VALUES (1, 99, 'x')",
    )
    return partial(call, "maintain", tmp_path / "job.toml")


def sqlite(root: Path, *statements: str) -> list[Any]:
    connection = sqlite3.connect(root / "one.sqlite", isolation_level=None)
    rows = [connection.execute(statement).fetchall() for statement in statements]
    connection.close()
    return rows[-1]


def duck(root: Path, *statements: str) -> list[Any]:
    with duckdb.connect(str(root / "two.duckdb")) as connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


def result(root: Path) -> list[Any]:
    with duckdb.connect(str(root / "view.duckdb"), read_only=True) as store:
        return store.execute("FROM result ORDER BY ALL").fetchall()


def ours(root: Path) -> list[Any]:
    found = sqlite(root, "SELECT name FROM sqlite_master WHERE name LIKE 'spillway%' ORDER BY 1")
    return found + duck(root, "SELECT schema_name FROM duckdb_schemas() WHERE schema_name = 'spillway'")


def test_upserts_of_the_application_go_on_and_schemas_are_kept_apart(maintain: Call, tmp_path: Path) -> None:
    assert maintain()[0] == 0
    assert result(tmp_path) == [(1, 10, 1), (2, 20, 1)]
    duck(
        tmp_path,
        "INSERT OR REPLACE INTO stage.b VALUES (1, 11)",
        "INSERT INTO stage.b VALUES (2, 0) ON CONFLICT DO UPDATE SET y = y + 1",
        "DELETE FROM b",
    )
    assert maintain()[0] == 0
    assert result(tmp_path) == [(1, 11, 1), (2, 21, 1)]
    duck(tmp_path, "CREATE OR REPLACE TABLE stage.b AS SELECT 1::BIGINT AS k, 12::BIGINT AS y")
    assert maintain()[0] == 0
    assert result(tmp_path) == [(1, 12, 1)]
    duck(tmp_path, "CREATE OR REPLACE TABLE stage.b AS SELECT 1::BIGINT AS k, 12::INTEGER AS y")
    code, _, error = maintain()
    assert (code, "--reload" in error) == (1, True), error
    assert maintain("--reload")[0] == 0
    assert result(tmp_path) == [(1, 12, 1)]


def test_a_deleted_store_leaves_no_reader_behind(maintain: Call, tmp_path: Path) -> None:
    assert maintain()[0] == 0
    (tmp_path / "view.duckdb").unlink()
    assert maintain()[0] == 0
    for number in range(3):
        sqlite(tmp_path, f"INSERT INTO a VALUES (1, {number})")
        assert maintain()[0] == 0
    assert sqlite(tmp_path, "SELECT count(*) FROM spillway_changes_a") == [(0,)]
    assert sqlite(tmp_path, "SELECT count(*) FROM spillway_readers") == [(1,)]
    (tmp_path / "view.duckdb").unlink()
    code, _, said = maintain("--forget")
    assert (code, "still" in said) == (0, False)
    assert ours(tmp_path) == []
    assert not (tmp_path / "view.duckdb").exists()


def test_forgetting_says_which_other_views_go_on(maintain: Call, tmp_path: Path) -> None:
    assert maintain()[0] == 0
    (tmp_path / "job.toml").write_text(JOB.replace("view.duckdb", "other.duckdb"))
    assert maintain()[0] == 0
    code, output, _ = maintain("--forget", "--json")
    (other,) = json.loads(output)["other_stores"]
    assert (code, other.endswith(":" + str(tmp_path / "view.duckdb"))) == (0, True)
    (tmp_path / "job.toml").write_text(JOB)
    sqlite(tmp_path, "INSERT INTO a VALUES (1, 7)")
    assert maintain()[0] == 0
    assert result(tmp_path) == [(1, 10, 1), (2, 20, 1), (7, 10, 1)]
    maintain("--forget")
    assert ours(tmp_path) == []


def test_a_failed_first_run_takes_the_corrected_view(maintain: Call, tmp_path: Path) -> None:
    sqlite(tmp_path, "INSERT INTO a VALUES (3, 'abc')")
    code, _, error = maintain()
    assert (code, error.count("\n"), "column x" in error) == (1, 1, True), error
    assert ours(tmp_path) == [], "a view that was not loaded needs no changes"
    (tmp_path / "job.toml").write_text(JOB.replace("a.x AS x", "a.k AS x"))
    assert maintain()[0] == 0
    assert result(tmp_path) == [(1, 10, 1), (2, 20, 1)]
    (tmp_path / "job.toml").write_text(JOB)
    code, _, error = maintain()
    assert (code, "holds another view" in error, "--reload" in error) == (1, True, True)
    sqlite(tmp_path, "DELETE FROM a WHERE k = 3")
    assert maintain("--reload")[0] == 0
    assert result(tmp_path) == [(1, 10, 1), (2, 20, 1)]


@pytest.mark.parametrize("strategy", ["auto", "batch", "recompute"])
def test_explain_changes_nothing(maintain: Call, tmp_path: Path, strategy: str) -> None:
    (tmp_path / "job.toml").write_text(JOB.replace('"batch"', f'"{strategy}"'))
    code, output, error = maintain("--explain", "--json")
    assert code == 0, error
    document = json.loads(output)
    assert (document["strategy"], document["loaded"]) == (strategy, False)
    assert bool(document["queries"]) == (strategy == "batch")
    assert maintain("--explain")[0] == 0
    assert ours(tmp_path) == []
    assert not (tmp_path / "view.duckdb").exists()
    assert maintain()[0] == 0
    document = json.loads(maintain("--explain", "--json")[1])
    assert document["loaded"] is True
    assert document["compared"]


def test_options_that_exclude_each_other(maintain: Call) -> None:
    code, _, error = maintain("--reload", "--forget")
    assert (code, "exclude each other" in error) == (1, True)


def test_a_store_of_an_older_version(maintain: Call, tmp_path: Path) -> None:
    assert maintain()[0] == 0
    with duckdb.connect(str(tmp_path / "view.duckdb")) as store:
        store.execute("UPDATE state SET format = 1")
    code, _, error = maintain()
    assert (code, error.count("\n"), "has format 1" in error, "--reload" in error) == (1, 1, True, True)
    assert maintain("--reload")[0] == 0
    assert result(tmp_path) == [(1, 10, 1), (2, 20, 1)]
