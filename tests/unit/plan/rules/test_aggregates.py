"""OVER clauses over one stream: what they mean, and what is refused."""

import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column
from spillway.model.statistic import Frame, Statistic
from spillway.model.view import View
from spillway.plan.expression import STATISTICS
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.operators.frame import AggregatePlan
from spillway.plan.rules.planner import plan_view

CATALOG = {
    "prices": (
        Column("sym", "string"),
        Column("ts", "timestamp", 5_000_000),
        Column("id", "bigint"),
        Column("price", "double"),
        Column("paid", "decimal(10,2)"),
        Column("tags", "array<int>"),
    ),
    "firms": (Column("sym", "string"), Column("ts", "timestamp")),
}
ROWS = "OVER (PARTITION BY sym ORDER BY ts, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"
RANGE = "OVER (PARTITION BY sym ORDER BY ts RANGE BETWEEN INTERVAL 30 SECONDS PRECEDING AND CURRENT ROW)"
SELECT = f"SELECT sym, ts, price, avg(price) {ROWS} AS a, count(*) {RANGE} AS n FROM prices WHERE price > 0"


def plan(sql: str) -> AggregatePlan:
    found = plan_view(View.sql(sql), CATALOG)
    assert isinstance(found, AggregatePlan)
    return found


def test_state_keeps_what_later_rows_need_and_the_rest_waits_with_its_row() -> None:
    found = plan(SELECT)
    assert found.statistics == (
        Statistic("avg", 2, Frame("rows", 9)),
        Statistic("count", None, Frame("range", 30_000_000)),
    )
    columns = [column.expression for column in found.input.columns]
    assert columns == ["unix_micros(`ts`)", "`id`", "`price`", "`sym`", "`ts`"]
    assert (found.kept, found.time, found.order, found.lateness_us) == (3, 0, (1,), 5_000_000)
    assert found.input.filter == "`price` > 0"
    assert found.input.times == ("`ts`", "`id`")
    assert found.input.keys == ("`sym`",)
    assert [output.name for output in found.outputs] == ["sym", "ts", "price", "a", "n"]
    assert found.outputs[3].value == ColumnRef(STATISTICS, 0)
    assert found.outputs[2].value == ColumnRef(0, 2)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("ROWS 3 PRECEDING", Frame("rows", 3)),
        ("ROWS BETWEEN CURRENT ROW AND CURRENT ROW", Frame("rows", 0)),
        ("RANGE BETWEEN CURRENT ROW AND CURRENT ROW", Frame("range", 0)),
        ("RANGE INTERVAL '1.5' MINUTE PRECEDING", Frame("range", 90_000_000)),
        ("RANGE BETWEEN INTERVAL '2 hours' PRECEDING AND CURRENT ROW", Frame("range", 7_200_000_000)),
    ],
)
def test_frames(frame: str, expected: Frame) -> None:
    found = plan(f"SELECT max(price) OVER (PARTITION BY sym ORDER BY ts, id {frame}) AS m FROM prices")
    assert found.statistics[0].frame == expected


def test_lateness_is_not_part_of_the_view_but_frames_are() -> None:
    late = CATALOG | {"prices": (CATALOG["prices"][0], Column("ts", "timestamp", 1), *CATALOG["prices"][2:])}
    other = plan_view(View.sql(SELECT), late)
    assert other.fingerprint == plan(SELECT).fingerprint
    assert plan(SELECT.replace("9 PREC", "8 PREC")).fingerprint != other.fingerprint
    built = View.of("prices").where("price > 0").select("sym", "ts", "price")
    built = built.select(f"avg(price) {ROWS} AS a", f"count(*) {RANGE} AS n")
    assert plan_view(built, CATALOG) == plan(SELECT)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"count(*) {ROWS.replace('id', 'id DESC')} AS n", "DESC is not supported yet"),
        (f"count(*) {ROWS.replace('id', 'id NULLS LAST')} AS n", "NULLS LAST is not"),
        (f"count(*) {ROWS.replace('CURRENT ROW', '1 FOLLOWING')} AS n", "FOLLOWING is not"),
        (f"count(*) {ROWS.replace('CURRENT ROW', '1 PRECEDING')} AS n", "ends before CURR"),
        (f"count(*) {ROWS.replace('9', 'UNBOUNDED')} AS n", "UNBOUNDED PRECEDING is not"),
        (f"count(*) {ROWS.replace('9', '9.5')} AS n", "ROWS takes a whole number"),
        (f"count(*) {ROWS.replace('CURRENT ROW)', 'CURRENT ROW EXCLUDE TIES)')} AS n", "EXCLUDE is"),
        (f"count(*) {ROWS.replace('ROWS', 'GROUPS')} AS n", "supported yet|syntax"),
        (f"count(*) {ROWS.replace('ts, id', 'ts')} AS n", "ROWS needs a total order"),
        (f"count(*) {ROWS.replace('ts, id', 'id, ts')} AS n", "ORDER BY begins with prices.id"),
        (f"count(*) {ROWS.replace('ts, id', 'ts, tags')} AS n", "tags is array<int>"),
        (f"count(*) {ROWS.replace('PARTITION BY sym', '')} AS n", "without PARTITION BY"),
        ("count(*) OVER (PARTITION BY sym) AS n", "OVER without ORDER BY is not"),
        ("count(*) OVER (PARTITION BY sym ORDER BY ts) AS n", "OVER without a frame"),
        (f"count(*) FILTER (WHERE id > 1) {ROWS} AS n", "FILTER is not supported yet"),
        (f"count(DISTINCT id) {ROWS} AS n", "DISTINCT is not supported yet"),
        (f"lag(id) {ROWS} AS n", "this window function is not supported yet: lag(id)"),
        (f"first(id) IGNORE NULLS {ROWS} AS n", "IGNORE NULLS is not supported yet"),
        (f"sum(id, 2) {ROWS} AS n", "a statistic has one"),
        (f"1 + sum(id) {ROWS} AS n", "OVER inside an expression is not supported yet"),
        (f"sum(sym) {ROWS} AS n", "sum of string is not supported"),
        (f"avg(paid) {ROWS} AS n", "avg of decimal(10,2) is not supported yet"),
        (f"max(tags) {ROWS} AS n", "prices.tags is array<int>"),
        (f"sum(nope) {ROWS} AS n", "unknown column nope"),
        (f"sum(id) {ROWS} AS n, id AS n", "two result columns are called n"),
        (f"sum(id) {ROWS} AS n, sum(id) {ROWS.replace('BY sym', 'BY id')} AS m",
         "another PARTITION BY in the same view is not"),
        (f"sum(id) {ROWS} AS n, sum(id) {ROWS.replace('ts, id', 'ts, price')} AS m",
         "another ORDER BY in the same view is not"),
        (f"sum(id) {RANGE.replace('INTERVAL 30 SECONDS', '30')} AS n", "RANGE goes by time"),
        (f"sum(id) {RANGE.replace('SECONDS', 'MONTHS')} AS n", "unknown unit MONTHS"),
        (f"count(*) {RANGE} AS n FROM firms", "source firms has none"),
        (f"count(*) {RANGE} AS n FROM prices [RANGE 1 DAY]", "has both a window in FROM and frames in OVER"),
        (f"count(*) {RANGE} AS n FROM prices p JOIN firms f USING (sym)", "a window function is not"),
        (f"id, count(*) {RANGE} AS n FROM prices WHERE count(*) {RANGE} > 1", "a window function is not"),
        ("count(*) OVER w AS n", "a named window is not supported yet"),
        (f"count(*) {RANGE} AS n FROM prices GROUP BY sym", "GROUP BY is not supported yet"),
    ],
)  # fmt: skip
def test_refused(sql: str, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        plan_view(View.sql(f"SELECT {sql}{'' if ' FROM ' in sql else ' FROM prices'}"), CATALOG)
    assert any(word in str(refused.value) for word in words.split("|"))
    assert "\n" not in str(refused.value)
