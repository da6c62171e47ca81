"""Explain output of typical views, as text and as JSON."""

import json
from collections.abc import Callable, Sequence

import pytest

from spillway.model.schema import Column, parse_ddl
from spillway.model.view import View
from spillway.plan.explain.explanation import explain, explain_dict
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.rules import AskedInput, InputStatistics
from spillway.plan.rules.planner import plan_view

CATALOG = {
    "prices": parse_ddl("symbol string, price double, at timestamp"),
    "trades": (*parse_ddl("symbol string, price double, id bigint"), Column("at", "timestamp", 5_000_000)),
    "volumes": parse_ddl("symbol string, volume bigint, venue struct<code:int,name:string>"),
    "reviews": parse_ddl("symbol string, stars int, body string"),
    "a": parse_ddl("k long, j int, id long, p string"),
    "b": parse_ddl("k long, j int, id long, p string"),
    "c": parse_ddl("k int, id long"),
}
VIEWS = {
    "issue": "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a, b, c WHERE a.k = b.k AND b.k = c.k",
    "analyst": (
        "SELECT p.symbol, p.price * v.volume AS turnover, v.venue.name AS venue, upper(r.body) AS review "
        "FROM prices p JOIN volumes v ON p.symbol = v.symbol JOIN reviews r ON r.symbol = v.symbol "
        "WHERE p.price > 10 AND r.stars BETWEEN 2 AND 5 AND p.price < v.volume"
    ),
    "several_keys": "SELECT x.id, y.p AS y_p FROM a x JOIN b y ON x.k = y.k AND x.j = y.j WHERE x.p <> y.p",
    "expression_key": "SELECT 1 AS one, coalesce(a.p, b.p) AS p FROM a JOIN b ON a.k + 1 = b.k",
    "tree": (
        "SELECT a.id, p.price, v.volume FROM a, b, c, prices p, volumes v "
        "WHERE a.k = b.k AND b.k = c.k AND b.p = p.symbol AND p.symbol = v.symbol AND a.j < v.volume"
    ),
    "statistics": (
        "SELECT symbol, at, avg(price) OVER (PARTITION BY symbol ORDER BY at, id ROWS 9 PRECEDING) AS a, "
        "count(*) OVER (PARTITION BY symbol ORDER BY at RANGE INTERVAL 30 SECONDS PRECEDING) AS n "
        "FROM trades WHERE price > 0"
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    plan = plan_view(View.sql(VIEWS[name]), CATALOG)
    golden(f"plans/{name}.txt", explain(plan, processors=3, groups=256))


def statistics(inputs: Sequence[AskedInput]) -> list[InputStatistics]:
    rows = {"a": 6e6, "b": 8e5, "c": 2e5}
    keys = {"`k`": 2e5, "`j`": 1e4, "`p`": 1.0}
    return [
        InputStatistics(
            rows[input_.name],
            rows[input_.name],
            {number: keys[key] for number, key in input_.keys.items()},
        )
        for input_ in inputs
    ]


PAIRS = {
    "by_statistics": (
        "SELECT a.id, b.p, c.id AS c_id FROM a, b, c WHERE a.k = b.k AND a.j = b.j AND b.k = c.k"
    ),
    "one_join_by_statistics": (
        "SELECT a.id, b.id AS b_id FROM a, b, c WHERE a.k = b.k AND a.p = b.p AND b.k = c.k"
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_choice_by_statistics(name: str, golden: Callable[[str, str], None]) -> None:
    plan = plan_view(View.sql(PAIRS[name]), CATALOG, statistics)
    golden(f"plans/{name}.txt", explain(plan, processors=2, groups=64))
    report = explain_dict(plan, processors=2, groups=64)
    golden(f"plans/{name}.json", json.dumps(report["choice"], indent=2) + "\n")


def test_fingerprints(golden: Callable[[str, str], None]) -> None:
    """Checkpoints are known by them."""
    found = {name: plan_view(View.sql(sql), CATALOG).fingerprint for name, sql in VIEWS.items()}
    golden("plans/fingerprints.json", json.dumps(found, indent=1) + "\n")


def test_json_with_types_from_spark(golden: Callable[[str, str], None]) -> None:
    plan = plan_view(View.sql(VIEWS["expression_key"]), CATALOG)
    report = explain_dict(
        plan, processors=2, groups=64, key_types=("bigint",), column_types={ColumnRef(0, 0): "string"}
    )
    golden("plans/expression_key.json", json.dumps(report, indent=2) + "\n")
