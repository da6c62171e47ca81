"""Aggregates over maintained joins: after every round `result` is what the database computes itself."""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit.examples import examples
from spillway.errors import ViewError
from spillway.maintain.choice import choose_by_name
from spillway.maintain.definition import define_view
from spillway.maintain.plan import RECOMPUTE
from spillway.maintain.settings import TableLocation
from spillway.maintain.sources.duckdb import DuckDbServer
from spillway.maintain.view_manager import ViewManager
from spillway.maintain.view_store import ViewStore
from spillway.model.view import View

Row = tuple[Any, ...]
JOIN = "FROM l JOIN r ON l.k = r.k"
PARTS = {
    "integers": ("l.g AS g, count(*) AS n, count(r.i) AS c, sum(r.i) AS s, avg(r.i) AS a", "GROUP BY l.g"),
    "extremes": ("l.g AS g, min(r.i) AS lo, max(r.i) AS hi, min(l.t) AS a, max(l.t) AS z", "GROUP BY l.g"),
    "decimals": ("r.t AS g, sum(r.d) AS s, avg(r.d) AS a, min(r.d) AS lo", "GROUP BY 1"),
    "doubles": ("l.g AS g, r.t AS t, sum(r.x) AS s, avg(l.x) AS a, max(r.x) AS hi", "GROUP BY l.g, r.t"),
    "expressions": ("l.g + r.g AS g, sum(l.k * r.g) AS s, max(l.i - r.i) AS d", "WHERE l.i > 1 GROUP BY 1"),
    "all rows": ("count(*) AS n, sum(l.i) AS s, min(r.t) AS lo, avg(r.x) AS a", ""),
    "only a count": ("count(*) AS n", "WHERE l.i < r.i"),
}
VIEWS = {name: f"SELECT {items} {JOIN} {rest}" for name, (items, rest) in PARTS.items()}


def random_row(chance: random.Random) -> list[Any]:
    pick = lambda *values: chance.choice([None, *values])  # noqa: E731
    return [
        pick(0, 1),
        pick(0, 1, 2),
        pick(-3, 0, 5, 2**62, 7),
        pick(0.1, -2.5, 1e10, 0.3),
        pick(Decimal("1.25"), Decimal("-7.50"), Decimal("99999999.99")),
        pick("", "a", "b", "zz"),
    ]


def change(base: duckdb.DuckDBPyConnection, chance: random.Random) -> None:
    table, kind = chance.choice("lr"), chance.choice(["insert", "insert", "delete", "update"])
    count = base.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
    rowid = f"(SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {chance.randrange(max(1, count))})"
    if kind == "insert" or not count:
        base.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", random_row(chance))
    elif kind == "delete":
        base.execute(f"DELETE FROM {table} WHERE rowid = {rowid}")
    else:
        base.execute(f"UPDATE {table} SET k = ?, i = ? WHERE rowid = {rowid}", [0, chance.randrange(9)])


def equal(ours: list[Row], theirs: list[Row]) -> bool:
    """Floating-point sums may differ in the last bits; everything else is equal."""

    def same(left: Any, right: Any) -> bool:
        if isinstance(left, float) and isinstance(right, float):
            return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12)
        return bool(left == right)

    order: Callable[[Row], Any] = lambda row: [(value is None, str(value)) for value in row]  # noqa: E731
    ours, theirs = sorted(ours, key=order), sorted(theirs, key=order)
    return len(ours) == len(theirs) and all(
        same(a, b) for left, right in zip(ours, theirs, strict=True) for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("name", VIEWS)
def test_rounds(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    base = duckdb.connect(str(tmp_path / "base.duckdb"))
    for table in "lr":
        base.execute(f"CREATE TABLE {table} (k INT, g INT, i BIGINT, x DOUBLE, d DECIMAL(12, 2), t VARCHAR)")
    server = DuckDbServer(base)
    definition = define_view(View.sql(VIEWS[name]), {table: server.columns(table) for table in "lr"})
    outputs = [item.name for item in definition.outputs]

    def opened() -> tuple[ViewStore, ViewManager]:
        store = ViewStore.open(
            tmp_path / "view.duckdb", definition.fingerprint, outputs, definition.aggregation
        )
        homes = [TableLocation("base", "l"), TableLocation("base", "r")]
        return store, ViewManager(definition, homes, {"base": server}, store, choose_by_name("batch"))

    store, manager = opened()
    manager.open()
    for number in range(examples(everyday=2)):
        for _ in range(chance.choice([1, 3, 8])):
            change(base, chance)
        manager.round()
        assert equal(store.result(), base.execute(VIEWS[name]).fetchall()), f"round {number}"
        if number % 10 == 9:
            assert manager.verify() == 0
            manager.close()
            store.close()
            store, manager = opened()
    base.execute("DELETE FROM l")
    manager.round()
    assert equal(store.result(), base.execute(VIEWS[name]).fetchall())
    manager.close()
    store.close()
    server.close()
    base.close()


def test_verify_finds_a_wrong_group(tmp_path: Path) -> None:
    base = duckdb.connect()
    for table in "lr":
        base.execute(f"CREATE TABLE {table} (k INT, g INT, i BIGINT)")
        base.execute(f"INSERT INTO {table} SELECT n % 3, n % 2, n FROM range(9) t(n)")
    server = DuckDbServer(base)
    view = View.sql(f"SELECT l.g AS g, sum(r.i) AS s {JOIN} GROUP BY l.g")
    definition = define_view(view, {table: server.columns(table) for table in "lr"})
    outputs = [item.name for item in definition.outputs]
    path = tmp_path / "view.duckdb"
    for expected in (0, 1):
        store = ViewStore.open(path, definition.fingerprint, outputs, definition.aggregation)
        homes = [TableLocation("base", "l"), TableLocation("base", "r")]
        manager = ViewManager(definition, homes, {"base": server}, store, choose_by_name(RECOMPUTE))
        assert manager.verify() == expected
        manager.close()
        store.close()
        with duckdb.connect(str(path)) as stored:
            stored.execute("UPDATE group_rows SET s1 = s1 + 1 WHERE o0 = 1")
    server.close()
    base.close()


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (f"SELECT l.g, sum(r.t) AS s {JOIN} GROUP BY l.g", "sum of r.t, which is string"),
        (f"SELECT l.g, r.i, count(*) AS n {JOIN} GROUP BY l.g", "neither aggregated nor in GROUP BY"),
        (f"SELECT count(DISTINCT l.g) AS n {JOIN}", "DISTINCT is not supported"),
        (f"SELECT l.g, count(*) AS n {JOIN} GROUP BY l.g HAVING count(*) > 1", "HAVING is not supported"),
        (f"SELECT l.g, sum(r.i) + 1 AS n {JOIN} GROUP BY l.g", "an aggregate is not supported"),
        (f"SELECT *, count(*) AS n {JOIN} GROUP BY l.g", "name the columns you want"),
        (f"SELECT l.g AS n, count(*) AS n {JOIN} GROUP BY l.g", "two result columns are called n"),
        (f"SELECT l.g, count(*) AS n {JOIN} GROUP BY 3", "there are 2 result columns"),
    ],
)
def test_what_cannot_be_aggregated_is_refused(view: str, words: str) -> None:
    with duckdb.connect() as base:
        for table in "lr":
            base.execute(f"CREATE TABLE {table} (k INT, g INT, i BIGINT, t VARCHAR)")
        server = DuckDbServer(base)
        catalog = {table: server.columns(table) for table in "lr"}
        server.close()
    with pytest.raises(ViewError, match=words):
        define_view(View.sql(view), catalog)
