"""Views of WITH and derived tables as plans: the same plan as the flat view, where there is one."""

from dataclasses import replace
from typing import Any

import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column, parse_ddl
from spillway.model.view import View
from spillway.plan.expression import Literal
from spillway.plan.rules.planner import plan_view

CATALOG = {
    "a": parse_ddl("k long, j int, id long, x int, s string, st struct<f:int,g:string>"),
    "b": parse_ddl("k long, j int, id long, y int, s string"),
    "c": parse_ddl("k long, id long, t string"),
    "p": (*parse_ddl("k long, v double"), Column("at", "timestamp", 5_000_000)),
    "q": (*parse_ddl("k long, v double"), Column("at", "timestamp", 5_000_000)),
}


def plan(sql: str | View) -> Any:
    return replace(plan_view(sql if isinstance(sql, View) else View.sql(sql), CATALOG), view="")


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        (
            "SELECT t.id, b.y FROM (SELECT k, id FROM a WHERE x > 1) t JOIN b ON t.k = b.k",
            "SELECT a.id, b.y FROM a, b WHERE a.x > 1 AND a.k = b.k",
        ),
        (
            "WITH v (m, n) AS (SELECT k, upper(s) FROM a) SELECT n, y FROM v JOIN b ON m = k WHERE n <> 'Q'",
            "SELECT upper(a.s) AS n, b.y FROM a, b WHERE upper(a.s) <> 'Q' AND a.k = b.k",
        ),
        (
            "SELECT u.i FROM (SELECT t.id AS i, t.m FROM "
            "(SELECT a.id, b.k AS m FROM a, b WHERE a.k = b.k) t) u JOIN c ON u.m = c.k",
            "SELECT a.id AS i FROM a, b, c WHERE a.k = b.k AND b.k = c.k",
        ),
        (
            "SELECT t.st.f, t.st.g AS h FROM (SELECT k, st FROM a) t JOIN b USING (k)",
            "SELECT a.st.f, a.st.g AS h FROM a JOIN b USING (k)",
        ),
        (
            "SELECT t.s FROM (SELECT k, s FROM a) t JOIN b "
            "ON (t.k = b.k AND b.y = 1) OR (t.k = b.k AND b.y = 2)",
            "SELECT a.s FROM a JOIN b ON a.k = b.k AND (b.y = 1 OR b.y = 2)",
        ),
        (
            "SELECT d.k, d.v FROM (SELECT p.k, q.v FROM p [RANGE 1 MINUTE] JOIN q ON p.k = q.k) d "
            "WHERE d.v > 1",
            "SELECT p.k, q.v FROM p [RANGE 1 MINUTE] JOIN q ON p.k = q.k WHERE q.v > 1",
        ),
    ],
)
def test_the_plan_of_the_flat_view(nested: str, flat: str) -> None:
    assert plan(nested) == plan(flat)


def test_a_flat_view_without_an_equality_of_its_own() -> None:
    """The equality is common to all sides of an OR."""
    found = plan("SELECT a.id FROM a, b WHERE (a.k = b.k AND a.x = 1) OR (a.k = b.k AND b.y = 1)")
    assert [input_.keys for input_ in found.inputs] == [("`k`",), ("`k`",)]
    assert found.residual is not None


def test_a_flat_view_keeps_its_conditions_as_they_are() -> None:
    """No weaker OR is added: checkpoints of such views exist."""
    found = plan(
        "SELECT a.id FROM a JOIN b ON a.k = b.k WHERE (a.x = 1 AND b.y = 1) OR (a.x = 2 AND b.y = 2)"
    )
    assert [input_.filter for input_ in found.inputs] == [None, None]
    derived = plan(
        "SELECT t.id FROM (SELECT * FROM a) t JOIN b ON t.k = b.k "
        "WHERE (t.x = 1 AND b.y = 1) OR (t.x = 2 AND b.y = 2)"
    )
    assert [input_.filter for input_ in derived.inputs] == ["(`x` = 1 OR `x` = 2)", "(`y` = 1 OR `y` = 2)"]


def test_inputs_of_one_alias_are_numbered() -> None:
    sql = (
        "WITH v AS (SELECT k, id FROM a) SELECT v.id AS i, w.id AS j FROM v, v w, b a_2 "
        "WHERE v.k = w.k AND w.k = a_2.k"
    )
    found = plan(sql)
    assert [(input_.name, input_.source) for input_ in found.inputs] == [
        ("a", "a"),
        ("a_3", "a"),
        ("a_2", "b"),
    ]
    given = plan(View.sql(sql).with_tree(("a", "a_3"), "a_2"))
    assert len(given.joins) == 2


def test_a_guarded_division_stays_behind_its_guard() -> None:
    found = plan(
        "SELECT t.id FROM (SELECT k, id, x, j FROM a WHERE j <> 0) t JOIN b USING (k) WHERE t.x / t.j > 1"
    )
    assert found.inputs[0].filter == "`j` <> 0 AND `x` / `j` > 1"


def test_a_built_view_of_derived_tables() -> None:
    built = View.of("(SELECT k, id FROM a WHERE x > 1) t").join("b", on="t.k = b.k").select("t.id")
    assert plan(built) == plan("SELECT a.id FROM a JOIN b ON a.k = b.k WHERE a.x > 1")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "SELECT d.k FROM (SELECT p.k FROM p [RANGE 1 MINUTE] JOIN q ON p.k = q.k) d JOIN b ON d.k = b.k",
            "a join with windows cannot be an input of another join yet",
        ),
        (
            "SELECT d.k FROM (SELECT p.k FROM p JOIN q ON p.k = q.k) d [RANGE 1 MINUTE]",
            "[RANGE 1 MINUTE] follows no source",
        ),
        (
            "SELECT d.k FROM (SELECT * FROM p) d JOIN q [RANGE 1 MINUTE] ON d.k = q.k",
            "q has a window, but d, which is joined with it, is not a source",
        ),
        ("SELECT d.k FROM (SELECT * FROM p [RANGE 1 MINUTE]) d JOIN q USING (k)", "window of p needs a join"),
        (
            "WITH d AS (SELECT * FROM p) SELECT d.k FROM d [RANGE 1 MINUTE] JOIN q USING (k)",
            "d is a WITH query and has no window",
        ),
    ],
)
def test_windows_belong_to_the_sources_of_one_join(sql: str, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        plan(sql)
    assert words in str(refused.value)


def chain(length: int, value: str) -> str:
    """Queries that each read the one before."""
    queries = ", ".join(
        f"v{number + 1} AS (SELECT k, {value} AS x FROM v{number})" for number in range(length)
    )
    return (
        f"WITH v0 AS (SELECT k, x FROM a), {queries} "
        f"SELECT v{length}.x FROM v{length} JOIN b ON v{length}.k = b.k"
    )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (chain(40, "x + x"), "more than 5000 parts"),
        (chain(190, "x + 1"), "is nested too deeply"),
        ("SELECT a.x FROM a JOIN b USING (k) WHERE " + "(" * 300 + "a.x" + ")" * 300, "is nested too deeply"),
    ],
)
def test_what_grows_or_nests_without_end_is_refused(sql: str, words: str) -> None:
    with pytest.raises(ViewError, match=words):
        plan(sql)


def test_a_whole_number_has_the_digits_of_its_type() -> None:
    """As a column of a derived table: beside a literal, Spark's decimals have fewer digits."""
    derived = "SELECT k, x, s, 2 AS n, -3 AS m, 'q' AS u FROM a"
    items = "t.x * t.n AS p, t.n, t.s || t.u AS w"
    found = plan(f"SELECT {items} FROM ({derived}) t JOIN b ON t.k = b.k WHERE t.x > t.m")
    assert [column.expression for column in found.inputs[0].columns] == [
        "`x` * CAST(2 AS INT)",
        "`s` || 'q'",
    ]
    assert found.inputs[0].filter == "`x` > CAST(-3 AS INT)"
    assert found.outputs[1].value == Literal(2, "int")
