"""SQLite files as applications really use them: REPLACE, other people's triggers, values of any type."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit.commands import Call
from spillway.job import read_maintain_job
from spillway.maintain.maintenance import open_maintenance

JOB = """
[view]
sql = "SELECT a.id AS id, a.u AS u, a.v AS v, b.w AS w FROM t a JOIN b ON a.k = b.k"
[servers.one]
kind = "sqlite"
path = "one.sqlite"
[sources.t]
server = "one"
[sources.b]
server = "one"
[maintain]
store = "view.duckdb"
"""
TABLES = {
    "rowid": "CREATE TABLE t (id INTEGER, k INTEGER, u TEXT, v INTEGER)",
    "integer key": "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, u TEXT UNIQUE, v INTEGER)",
    "text key": "CREATE TABLE t (id INTEGER, k INTEGER, u TEXT PRIMARY KEY COLLATE NOCASE, v INTEGER)",
    "two columns": "CREATE TABLE t (id INTEGER, k INTEGER, u TEXT, v INTEGER, UNIQUE (id, u), UNIQUE (v))",
    "without rowid": "CREATE TABLE t (id INTEGER, k INTEGER, u TEXT UNIQUE, v INTEGER, "
    "PRIMARY KEY (id)) WITHOUT ROWID",
    "partial": "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, u TEXT, v INTEGER);"
    "CREATE UNIQUE INDEX some ON t (u) WHERE v > 1",
    "shadowed rowid": 'CREATE TABLE t (id INTEGER, k INTEGER, u TEXT UNIQUE, v INTEGER, "rowid" TEXT)',
}
STATEMENTS = (
    "INSERT OR REPLACE INTO t (id, k, u, v) VALUES ({id}, {k}, '{u}', {v})",
    "INSERT OR IGNORE INTO t (id, k, u, v) VALUES ({id}, {k}, '{u}', {v})",
    "INSERT OR FAIL INTO t (id, k, u, v) VALUES ({id}, {k}, '{u}', {v}), ({k}, {k}, '{u}', {id})",
    "INSERT INTO t (id, k, u, v) VALUES ({id}, {k}, '{u}', {v})",
    "INSERT INTO t (id, k, u, v) VALUES ({id}, {k}, '{u}', {v}) ON CONFLICT DO UPDATE SET v = v + 9, k = {k}",
    "INSERT INTO t (k, u, v) VALUES ({k}, '{u}', {v}) ON CONFLICT DO NOTHING",
    "UPDATE OR REPLACE t SET id = {id}, u = '{u}' WHERE v = {v}",
    "UPDATE OR IGNORE t SET u = '{u}' WHERE k = {k}",
    "UPDATE OR REPLACE t SET v = {v} WHERE id >= {id}",
    "UPDATE t SET v = v + 1 WHERE id = {id}",
    "DELETE FROM t WHERE id = {id}",
    "DELETE FROM t WHERE u = '{u}'",
)


class Shop:
    def __init__(self, root: Path, run: Call) -> None:
        self.root, self.maintain = root, run
        self.connection = sqlite3.connect(root / "one.sqlite", isolation_level=None)
        self.connection.executescript(
            "CREATE TABLE b (k INTEGER, w INTEGER); INSERT INTO b VALUES (0, 0), (1, 10), (1, 11), (2, 20)"
        )

    def result(self) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.root / "view.duckdb"), read_only=True) as store:
            return store.execute("FROM result ORDER BY ALL").fetchall()

    def expected(self) -> list[tuple[Any, ...]]:
        rows = self.connection.execute(
            "SELECT a.id, a.u, a.v, b.w, count(*) FROM t a JOIN b ON a.k = b.k "
            "GROUP BY a.id, a.u COLLATE BINARY, a.v, b.w"
        ).fetchall()
        with duckdb.connect() as base:
            base.execute("CREATE TABLE e (id BIGINT, u VARCHAR, v BIGINT, w BIGINT, n BIGINT)")
            if rows:
                base.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?)", rows)
            return base.execute("FROM e ORDER BY ALL").fetchall()


@pytest.fixture
def shop(tmp_path: Path, call: Call) -> Any:
    (tmp_path / "job.toml").write_text(JOB)
    found = Shop(tmp_path, partial(call, "maintain", tmp_path / "job.toml"))
    yield found
    found.connection.close()


def test_replace_takes_the_old_row_out_of_the_view(shop: Shop) -> None:
    shop.connection.executescript(
        TABLES["integer key"] + "; INSERT INTO t VALUES (1, 1, 'a', 5), (2, 2, 'b', 6)"
    )
    assert shop.maintain()[0] == 0
    shop.connection.execute("REPLACE INTO t VALUES (1, 1, 'b', 7)")  # both rows go
    assert shop.maintain()[0] == 0
    assert shop.result() == shop.expected() == [(1, "b", 7, 10, 1), (1, "b", 7, 11, 1)]
    assert shop.maintain("--verify")[0] == 0


def test_a_number_with_a_fraction_in_an_integer_column_is_refused_while_it_is_there(shop: Shop) -> None:
    shop.connection.executescript(TABLES["rowid"] + "; INSERT INTO t VALUES (1, 1, 'a', 5)")
    assert shop.maintain()[0] == 0
    before = shop.result()
    for bad in ("1.5", "'abc'", "x'61'"):
        shop.connection.execute(f"INSERT INTO t VALUES (2, 1, 'b', {bad})")
        code, _, error = shop.maintain()
        assert (code, error.count("\n")) == (1, 1), error
        assert "column v" in error
        assert shop.result() == before
        shop.connection.execute("DELETE FROM t WHERE id = 2")
        assert shop.maintain()[0] == 0
        assert shop.result() == shop.expected() == before
    shop.connection.execute("INSERT INTO t VALUES (3, 1, x'61', 5)")
    code, _, error = shop.maintain()
    assert (code, "column u" in error) == (1, True)


def test_a_bad_value_that_is_corrected_is_forgotten(shop: Shop) -> None:
    shop.connection.executescript(TABLES["integer key"] + "; INSERT INTO t VALUES (1, 1, 'a', 5)")
    assert shop.maintain()[0] == 0
    shop.connection.execute("UPDATE t SET v = 'abc'")
    assert shop.maintain()[0] == 1
    shop.connection.execute("UPDATE t SET v = 9")
    assert shop.maintain()[0] == 0
    assert shop.result() == shop.expected()


TRIGGERS = (
    "",
    "CREATE TRIGGER stamp AFTER INSERT ON t WHEN NEW.v < 5 BEGIN UPDATE t SET v = v + 5 WHERE u = NEW.u; END",
    "CREATE TRIGGER clean BEFORE INSERT ON t BEGIN DELETE FROM t WHERE v = NEW.v AND k <> NEW.k; END",
    # SQLite does not say what happens if such a trigger changes the row that is being updated.
    "CREATE TRIGGER more BEFORE UPDATE ON t WHEN NEW.v < 3 AND OLD.id <> 7 AND OLD.v <> 9 "
    "AND OLD.u <> 'more' BEGIN INSERT OR REPLACE INTO t (id, k, u, v) VALUES (7, 1, 'more', 9); END",
)


def statements(chance: random.Random) -> Iterator[str]:
    for _ in range(15):
        values = {name: chance.randrange(4) for name in ("id", "k", "v")}
        yield chance.choice(STATEMENTS).format(u=chance.choice("aAbc"), **values)


@pytest.mark.parametrize("trigger", range(len(TRIGGERS)))
@pytest.mark.parametrize("table", TABLES)
def test_random_statements_over_every_kind_of_key(shop: Shop, table: str, trigger: int) -> None:
    chance = random.Random(f"{table} {trigger}")
    shop.connection.executescript(TABLES[table])
    shop.connection.executescript(TRIGGERS[trigger])
    with open_maintenance(read_maintain_job(shop.root / "job.toml")) as maintenance:
        maintenance.manager.open()
        lived = []
        for number in range(5):
            shop.connection.execute(f"PRAGMA recursive_triggers = {number % 2}")
            for statement in statements(chance):
                lived.append(statement)
                with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                    shop.connection.execute(statement)
            if number == 2:
                shop.connection.execute("VACUUM")
            maintenance.manager.round()
            stored = sorted(maintenance.store.result(), key=repr)
            assert stored == sorted(shop.expected(), key=repr), "; ".join(lived)
        assert maintenance.manager.verify() == 0


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE UNIQUE INDEX later ON t (v)",
        "CREATE TRIGGER later AFTER INSERT ON t BEGIN DELETE FROM t WHERE v = 99; END",
        "ALTER TABLE t ADD COLUMN more TEXT",
        "ALTER TABLE t RENAME COLUMN v TO renamed",
        "DROP TRIGGER spillway_delete_t",
    ],
)
def test_what_our_triggers_do_not_know_asks_for_a_reload(shop: Shop, statement: str) -> None:
    shop.connection.executescript(TABLES["integer key"] + "; INSERT INTO t VALUES (1, 1, 'a', 5)")
    assert shop.maintain()[0] == 0
    shop.connection.execute(statement)
    if "renamed" in statement:
        (shop.root / "job.toml").write_text(JOB.replace("a.v AS v", "a.renamed AS v"))
    code, _, error = shop.maintain()
    assert (code, error.count("\n"), "--reload" in error) == (1, 1, True), error
    assert shop.maintain("--reload")[0] == 0
    shop.connection.execute("INSERT OR REPLACE INTO t (id, k, u) VALUES (1, 2, 'a')")
    assert shop.maintain()[0] == 0
    assert [row[0] for row in shop.result()] == [1]
    assert shop.maintain("--verify")[0] == 0


def test_a_unique_key_over_an_expression_is_refused(shop: Shop) -> None:
    shop.connection.executescript(TABLES["rowid"] + "; CREATE UNIQUE INDEX odd ON t (abs(v))")
    code, _, error = shop.maintain()
    assert (code, error.count("\n"), "unique index odd over an expression" in error) == (1, 1, True), error
