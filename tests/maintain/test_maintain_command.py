"""`spillway maintain`: a view over an SQLite and a DuckDB file, from load to verify, and bad jobs refused."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from kit.commands import Call

JOB = '''
[view]
sql = """
SELECT o.id AS id, c.name AS name, p.price * o.n AS total FROM orders o
JOIN customers c ON o.customer = c.id JOIN prices p ON p.item = o.item WHERE o.n > 0
"""
[servers.shop]
kind = "sqlite"
path = "shop.sqlite"
[servers.base]
kind = "duckdb"
path = "base.duckdb"
[sources.orders]
server = "shop"
[sources.customers]
server = "shop"
table = "customer"
[sources.prices]
server = "base"
[maintain]
store = "view.duckdb"
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER, customer INTEGER, item TEXT, n INTEGER);"
            "CREATE TABLE customer (id INTEGER, name TEXT);"
            "INSERT INTO orders VALUES (1, 1, 'pen', 2), (2, 2, 'ink', 1), (3, 1, 'ink', 0);"
            "INSERT INTO customer VALUES (1, 'ann'), (2, 'bob');"
        )
    connection.close()
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute("CREATE TABLE prices (item VARCHAR, price BIGINT)")
        base.execute("INSERT INTO prices VALUES ('pen', 3), ('ink', 5)")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def result(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path / "view.duckdb"), read_only=True) as store:
        return store.execute("FROM result ORDER BY ALL").fetchall()


def test_load_round_verify_and_explain(shop: Path, call: Call) -> None:
    code, output, _ = call("maintain", shop / "job.toml", "--json")
    assert (code, json.loads(output)["rows"], json.loads(output)["rounds"]) == (0, 2, [])
    assert result(shop) == [(1, "ann", 6, 1), (2, "bob", 5, 1)]

    with sqlite3.connect(shop / "shop.sqlite") as connection:
        connection.execute("UPDATE orders SET n = 4 WHERE id = 3")
        connection.execute("DELETE FROM customer WHERE name = 'bob'")
    connection.close()
    with duckdb.connect(str(shop / "base.duckdb")) as base:
        base.execute("UPDATE prices SET price = 10 WHERE item = 'pen'")
    code, output, _ = call("maintain", shop / "job.toml", "--json")
    (report,) = json.loads(output)["rounds"]
    assert (code, report["round"], report["updates"]) == (0, 1, 5)
    assert result(shop) == [(1, "ann", 20, 1), (3, "ann", 20, 1)]

    assert json.loads(call("maintain", shop / "job.toml", "--verify", "--json")[1])["verified"] is True
    code, output, _ = call("maintain", shop / "job.toml", "--explain", "--json")
    assert (code, set(json.loads(output)["compared"]) >= {"conditional", "recompute"}) == (0, True)
    code, output, _ = call("maintain", shop / "job.toml", "--explain")
    assert code == 0
    assert "strategy" in output
    journal = (shop / "view.duckdb.journal.jsonl").read_text().splitlines()
    line = json.loads(journal[0])
    assert (line["kind"], line["queries"]) == ("round", report["queries"])


def test_an_aggregated_view(shop: Path, call: Call) -> None:
    start = JOB.index("SELECT o.id AS id"), JOB.index("FROM orders o")
    select = "SELECT c.name AS name, count(*) AS n, sum(p.price * o.n) AS total, max(o.item) AS last "
    job = JOB[: start[0]] + select + JOB[start[1] :].replace("WHERE o.n > 0", "WHERE o.n > 0 GROUP BY c.name")
    (shop / "job.toml").write_text(job)
    assert call("maintain", shop / "job.toml", "--json")[0] == 0
    assert result(shop) == [("ann", 1, 6, "pen"), ("bob", 1, 5, "ink")]
    with sqlite3.connect(shop / "shop.sqlite") as connection:
        connection.execute("UPDATE orders SET n = 4 WHERE id = 3")
        connection.execute("DELETE FROM customer WHERE name = 'bob'")
    connection.close()
    code, output, _ = call("maintain", shop / "job.toml", "--json")
    summary = json.loads(output)
    assert (code, summary["rows"], summary["rounds"][0]["updates"]) == (0, 1, 3)
    assert 0 < summary["lag_seconds_max"] <= summary["freshness_seconds_max"] < 60
    assert result(shop) == [("ann", 2, 26, "pen")]
    assert json.loads(call("maintain", shop / "job.toml", "--verify", "--json")[1])["verified"] is True


def test_forgetting_removes_what_was_recorded_and_the_next_run_loads_again(shop: Path, call: Call) -> None:
    assert call("maintain", shop / "job.toml", "--forget")[0] == 0, "there is nothing yet"
    call("maintain", shop / "job.toml", "--json")
    code, _, said = call("maintain", shop / "job.toml", "--forget")
    assert (code, "loads the view again" in said) == (0, True)
    with sqlite3.connect(shop / "shop.sqlite") as connection:
        names = "SELECT name FROM sqlite_master WHERE name LIKE 'spillway%'"
        assert [name for (name,) in connection.execute(names)] == []
        connection.execute("DELETE FROM orders WHERE id = 2")
    connection.close()
    with duckdb.connect(str(shop / "base.duckdb")) as base:
        base.execute("UPDATE prices SET price = 4 WHERE item = 'pen'")
        assert base.execute("FROM duckdb_schemas() WHERE schema_name = 'spillway'").fetchall() == []
    assert result(shop) == [(1, "ann", 6, 1), (2, "bob", 5, 1)], "what was stored can still be read"
    assert call("maintain", shop / "job.toml", "--json")[0] == 0
    assert result(shop) == [(1, "ann", 8, 1)]
    with sqlite3.connect(shop / "shop.sqlite") as connection:
        connection.execute("UPDATE orders SET n = 1 WHERE id = 3")
    connection.close()
    call("maintain", shop / "job.toml", "--json")
    assert result(shop) == [(1, "ann", 8, 1), (3, "ann", 5, 1)], "changes are recorded again"


def test_verify_finds_a_view_that_is_wrong(shop: Path, call: Call) -> None:
    call("maintain", shop / "job.toml", "--json")
    with duckdb.connect(str(shop / "view.duckdb")) as store:
        store.execute("UPDATE view_rows SET _count = 7 WHERE o0 = 1")
    code, _, error = call("maintain", shop / "job.toml", "--verify")
    assert code == 1
    assert "differs from recomputation in 6 rows" in error


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('store = "view.duckdb"', 'store = "view.duckdb"\nstrategy = "clever"', "must be one of auto"),
        ('kind = "sqlite"', 'kind = "oracle"', "must be one of postgresql"),
        ('kind = "sqlite"', 'kind = "sqlite"\nfeed = "logical"', "only for postgresql"),
        ('server = "base"', 'server = "none"', "there is no [servers.none]"),
        ('path = "shop.sqlite"', 'path = "none.sqlite"', "does not exist"),
        ('table = "customer"', 'table = "customers"', "has no table customers"),
        ("c.name AS name", "upper(c.name) AS name", "not supported in a maintained view"),
        ("o.customer = c.id", "o.item = c.id", "make their types equal"),
        ("o.customer = c.id", "o.customer > c.id", "needs an equi-join between all"),
    ],
)
def test_bad_jobs_are_refused_in_one_line_before_anything_is_written(
    shop: Path, call: Call, old: str, new: str, words: str
) -> None:
    (shop / "job.toml").write_text(JOB.replace(old, new))
    code, _, error = call("maintain", shop / "job.toml")
    assert (code, error.count("\n"), words in error) == (1, 1, True), error
    assert not (shop / "view.duckdb").exists()


def test_another_view_is_refused(shop: Path, call: Call) -> None:
    call("maintain", shop / "job.toml", "--json")
    (shop / "job.toml").write_text(JOB.replace("WHERE o.n > 0", "WHERE o.n > 1"))
    code, _, error = call("maintain", shop / "job.toml")
    assert (code, "holds another view" in error) == (1, True)


def test_a_run_for_ever_ends_after_a_round_when_it_is_told(shop: Path) -> None:
    """Nothing is missing between two rounds: the exit code is 0, and the summary names the signal."""
    job = shop / "job.toml"
    job.write_text(job.read_text() + 'until = "forever"\ninterval_seconds = 0.1\n')
    command = [sys.executable, "-m", "spillway", "maintain", str(job), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal, until = shop / "view.duckdb.journal.jsonl", time.monotonic() + 60
    while not journal.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.5)  # the first rounds
    process.send_signal(signal.SIGTERM)
    output, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert json.loads(output.splitlines()[-1])["interrupted"] == "SIGTERM"
    assert "stopping after the current round" in error
    assert len(result(shop)) == 2


@pytest.mark.parametrize("more", [[], ["--forget"], ["--reload"]])
@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("job.toml/sub/view.duckdb", "cannot be"),
        ("/proc/none/view.duckdb", "cannot be created"),
        ("other.sqlite", "is not a DuckDB file"),
        ("shop.sqlite", "is the file of [servers.shop]"),
        ("base.duckdb", "is the file of [servers.base]"),
        ("own.duckdb", "tables of its own (result)"),
    ],
)
def test_a_store_that_is_none_is_refused_in_one_line(
    shop: Path, call: Call, store: str, words: str, more: list[str]
) -> None:
    with sqlite3.connect(shop / "other.sqlite") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with duckdb.connect(str(shop / "own.duckdb")) as own:
        own.execute("CREATE TABLE result AS SELECT 42 AS x")
    before = sorted(shop.iterdir())
    (shop / "job.toml").write_text(JOB.replace("view.duckdb", store))
    code, _, error = call("maintain", shop / "job.toml", *more)
    assert (code, error.count("\n"), words in error) == (1, 1, True), error
    assert sorted(shop.iterdir()) == before
    with duckdb.connect(str(shop / "own.duckdb")) as own:
        assert own.execute("FROM result").fetchall() == [(42,)]


def test_verify_says_which_changes_wait(shop: Path, call: Call) -> None:
    call("maintain", shop / "job.toml")
    with sqlite3.connect(shop / "shop.sqlite") as connection:
        connection.execute("UPDATE orders SET n = 4 WHERE id = 3")
    connection.close()
    with duckdb.connect(str(shop / "base.duckdb")) as base:
        base.execute("INSERT INTO prices VALUES ('cap', 1)")
    summary = json.loads(call("maintain", shop / "job.toml", "--verify", "--json")[1])
    assert (summary["verified"], summary["verified_round"]) == (True, 0)
    assert summary["waiting_changes"] == {"orders": 2, "customers": 0, "prices": 1}
    _, _, said = call("maintain", shop / "job.toml", "--verify")
    assert "as of round 0" in said
    assert "2 of orders, 1 of prices; run spillway maintain" in said
    call("maintain", shop / "job.toml")
    summary = json.loads(call("maintain", shop / "job.toml", "--verify", "--json")[1])
    assert (summary["verified_round"], set(summary["waiting_changes"].values())) == (1, {0})


@pytest.mark.parametrize("name", ["spillway_weight", "Spillway_Number"])
@pytest.mark.parametrize("table", ["prices", "orders"])
def test_a_column_with_a_name_of_ours_is_refused(shop: Path, call: Call, table: str, name: str) -> None:
    sql = f"ALTER TABLE {table} ADD COLUMN {name} INTEGER"
    if table == "prices":
        with duckdb.connect(str(shop / "base.duckdb")) as base:
            base.execute(sql)
    else:
        with sqlite3.connect(shop / "shop.sqlite") as connection:
            connection.execute(sql)
        connection.close()
    code, _, error = call("maintain", shop / "job.toml")
    assert (code, error.count("\n"), f"has a column {name}" in error) == (1, 1, True), error


@pytest.mark.parametrize("command", ["run", "explain", "compute"])
def test_other_commands_name_the_one_for_this_job(shop: Path, call: Call, command: str) -> None:
    code, _, error = call(command, shop / "job.toml")
    assert (code, error.count("\n"), "use spillway maintain" in error) == (1, 1, True), error
    (shop / "run.toml").write_text('[view]\nsql = "SELECT 1"\n[sources.a]\nformat = "parquet"\npath = "a"\n')
    code, _, error = call("maintain", shop / "run.toml")
    assert (code, "spillway run" in error) == (1, True), error
