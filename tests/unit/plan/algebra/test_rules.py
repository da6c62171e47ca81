"""What each rule does to a relation; that rows stay the same is in `tests/property/plan`."""

import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column, parse_ddl
from spillway.model.view import View
from spillway.plan.algebra import (
    Filter,
    InnerJoin,
    Project,
    Relation,
    SourceRows,
    UnionAll,
    build,
    rewritten,
    simplified,
)
from spillway.plan.algebra.columns import may_fail
from spillway.plan.algebra.common_conjuncts import common_conjuncts
from spillway.plan.algebra.flatten_joins import flatten_joins
from spillway.plan.algebra.prune_columns import prune_columns
from spillway.plan.algebra.push_predicates import push_predicates
from spillway.plan.rules import source_type
from spillway.plan.sql import label, parse_expression, parse_query

CATALOG = {
    "a": parse_ddl("k long, x int, y int, s string, st struct<f:int>"),
    "b": parse_ddl("k long, x int, z int, d decimal(10,2)"),
    "p": (*parse_ddl("k long, v double"), Column("at", "timestamp", 5_000_000)),
    "q": (*parse_ddl("k long, v double"), Column("at", "timestamp", 5_000_000)),
}


def built(sql: str) -> Relation:
    return build(parse_query(View.sql(sql)), CATALOG, source_type)


def text(relation: Relation) -> str:
    """A relation on one line: `a[x > 1]` is a filter, `(a b)[...]` a join, `{...}` a projection."""
    return _text(relation, {})


def _text(relation: Relation, names: dict[int, str]) -> str:
    if isinstance(relation, SourceRows):
        names |= {field.id: f"{relation.alias}.{field.name}" for field in relation.fields}
        return relation.alias
    if isinstance(relation, Filter):
        return f"{_text(relation.input, names)}[{_all(relation.conjuncts, names)}]"
    if isinstance(relation, InnerJoin):
        inputs = " ".join(_text(part, names) for part in relation.inputs)
        return f"({inputs})[{_all(relation.conjuncts, names)}]"
    if isinstance(relation, UnionAll):
        inputs = " + ".join(_text(part, names) for part in relation.inputs)
        names |= {field.id: field.name for field in relation.fields}
        return f"({inputs})"
    below = _text(relation.input, names)
    items = ", ".join(_node(item.value, names) for item in relation.items)
    names |= {item.field.id: item.field.name for item in relation.items}
    return f"{below}{{{items}}}"


def _all(nodes: tuple, names: dict[int, str]) -> str:  # type: ignore[type-arg]
    return ", ".join(_node(node, names) for node in nodes)


def _node(node, names: dict[int, str]) -> str:  # type: ignore[no-untyped-def]
    def named(column):  # type: ignore[no-untyped-def]
        parsed = parse_expression(names[int(column.name)])
        assert parsed is not None
        return parsed

    return label(rewritten(node, named))


def test_build_keeps_the_shape_of_the_statement() -> None:
    sql = "WITH v (m) AS (SELECT x + 1 FROM a) SELECT t.m FROM v t, (SELECT k FROM b) u WHERE t.m = u.k"
    assert text(built(sql)) == "(a{a.x + 1}{a.x + 1} b{b.k})[m = k]{m}"


def test_each_use_of_a_query_has_its_own_fields() -> None:
    relation = built("WITH v AS (SELECT k FROM a) SELECT t.k, u.k AS j FROM v t, v u WHERE t.k = u.k")
    assert isinstance(relation, Project)
    assert isinstance(relation.input, InnerJoin)
    first, second = relation.input.inputs
    assert {field.id for field in first.fields}.isdisjoint(field.id for field in second.fields)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("(a.k = b.k AND a.x = 1) OR (b.z = 2 AND a.k = b.k)", "a.k = b.k, a.x = 1 OR b.z = 2"),
        ("a.k = b.k OR (a.k = b.k AND a.x = 1)", "a.k = b.k"),
        ("(a.x = 1 AND a.x = 1) OR a.x = 1", "a.x = 1"),
        ("(a.x = 1 AND b.z = 1) OR a.k = b.k", "(a.x = 1 AND b.z = 1) OR a.k = b.k"),
        (
            "(a.y <> 0 AND a.x / a.y = 1) OR (a.y <> 0 AND a.x / a.y = 1 AND b.z = 2)",
            "a.y <> 0, a.x / a.y = 1 OR a.x / a.y = 1 AND b.z = 2",
        ),
    ],
)
def test_common_conjuncts(where: str, expected: str) -> None:
    """What may fail is not taken out: its guard may differ from side to side."""
    relation = common_conjuncts(built(f"SELECT a.k FROM a, b WHERE {where}"))
    assert text(relation) == f"(a b)[{expected}]{{a.k}}"


def test_joins_become_one_join_and_inner_conditions_come_first() -> None:
    sql = (
        "SELECT t.n, b.z FROM (SELECT a.x + 1 AS n, u.z FROM a JOIN b u ON a.k = u.k WHERE u.z > 1) t, b "
        "WHERE t.n = b.x"
    )
    assert text(flatten_joins(built(sql))) == "(a u b)[a.k = u.k, u.z > 1, (a.x + 1) = b.x]{a.x + 1, b.z}"


def test_a_join_with_windows_stays_apart() -> None:
    inner = "SELECT p.k, p.v FROM p [RANGE 1 MINUTE] JOIN q ON p.k = q.k"
    relation = flatten_joins(built(f"SELECT t.k FROM ({inner}) t JOIN b ON t.k = b.k"))
    assert text(relation) == "((p q)[p.k = q.k] b)[p.k = b.k]{p.k}"
    alone = flatten_joins(built(f"SELECT t.k FROM ({inner}) t WHERE t.v > 1"))
    assert text(alone) == "(p q)[p.k = q.k, p.v > 1]{p.k}"


def test_conditions_go_to_the_input_that_they_read() -> None:
    sql = "SELECT t.n FROM (SELECT x + 1 AS n, k, y FROM a) t, b WHERE t.y = 2 AND t.k = b.k AND b.z > 1"
    assert text(push_predicates(built(sql))) == "(a[a.y = 2]{a.x + 1, a.k, a.y} b[b.z > 1])[k = b.k]{n}"


def test_conditions_go_into_every_branch() -> None:
    sql = "SELECT * FROM (SELECT k, x FROM a WHERE x > 0 UNION ALL SELECT x, z FROM b) t WHERE t.x < 9"
    relation = text(push_predicates(built(sql)))
    assert "a[a.x > 0, a.x < 9]" in relation
    assert "b[b.z < 9]" in relation


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # Not guarded: tested where it is cheapest.
        ("a.x / a.y > 1 AND a.k = b.k", "(a[a.x / a.y > 1] b)[a.k = b.k]"),
        # The guard goes with it.
        ("a.y <> 0 AND a.x / a.y > 1", "(a[a.y <> 0, a.x / a.y > 1] b)[]"),
        # The guard stays, so it stays too; what cannot fail goes.
        ("a.y <> b.z AND a.x / (a.y - 1) > 1 AND a.x = 3", "(a[a.x = 3] b)[a.y <> b.z, a.x / (a.y - 1) > 1]"),
        ("b.z = 1 AND CAST(a.s AS INT) > 1", "(a b[b.z = 1])[CAST(a.s AS INT) > 1]"),
        ("a.x = b.x AND a.s LIKE 'a%'", "(a b)[a.x = b.x, a.s LIKE 'a%']"),
    ],
)
def test_what_may_fail_stays_behind_its_guard(where: str, expected: str) -> None:
    assert text(push_predicates(built(f"SELECT a.k FROM a, b WHERE {where}"))) == f"{expected}{{a.k}}"


def test_each_input_gets_what_an_or_asks_of_it() -> None:
    sides = "(a.x = 1 AND b.z = 2 AND a.x / a.y = 1) OR (a.x = 2 AND b.z = 1 AND b.x = a.x)"
    relation = push_predicates(built(f"SELECT a.k FROM a, b WHERE a.k = b.k AND ({sides})"))
    assert text(relation).startswith("(a[a.x = 1 OR a.x = 2] b[b.z = 2 OR b.z = 1])[a.k = b.k, ")
    one_side = push_predicates(built("SELECT a.k FROM a, b WHERE (a.x = 1 AND b.z = 2) OR b.z = 1"))
    assert text(one_side) == "(a b[b.z = 2 OR b.z = 1])[(a.x = 1 AND b.z = 2) OR b.z = 1]{a.k}"


@pytest.mark.parametrize(
    ("sql", "fails"),
    [
        ("x / y", True),
        ("CAST(x AS INT)", True),
        ("f(x)", True),
        ("x + 1", True),
        ("x = 1 AND y IS NULL OR NOT x IN (1, 2)", False),
        ("CASE WHEN x > 1 THEN y ELSE z END", False),
    ],
)
def test_may_fail(sql: str, fails: bool) -> None:
    node = parse_expression(sql)
    assert node is not None
    assert may_fail(node) == fails


def test_columns_that_nothing_reads_are_dropped() -> None:
    sql = (
        "SELECT t.k FROM (SELECT k, x, y FROM a UNION ALL SELECT k, x, z FROM b) t "
        "JOIN (SELECT k, x, z FROM b) u ON t.k = u.k WHERE u.z > 1"
    )
    relation = prune_columns(built(sql))
    assert text(relation) == "((a{a.k} + b{b.k}) b{b.k, b.z})[k = k, z > 1]{k}"
    assert isinstance(relation, Project)
    assert isinstance(relation.input, InnerJoin)
    derived = relation.input.inputs[1]
    assert isinstance(derived, Project)
    assert [field.name for field in derived.input.fields] == ["k", "z"]


def test_all_rules_together() -> None:
    sql = (
        "WITH v AS (SELECT k, x + y AS n, s FROM a) SELECT l.n, r.z FROM v l JOIN b r ON l.k = r.k "
        "WHERE l.s = 'q' AND (l.n > 1 AND r.z = 1 OR r.z = 2)"
    )
    expected = "(a[a.s = 'q'] r[r.z = 1 OR r.z = 2])[a.k = r.k, (a.x + a.y) > 1 AND r.z = 1 OR r.z = 2]"
    assert text(simplified(built(sql))) == f"{expected}{{a.x + a.y, r.z}}"


@pytest.mark.parametrize(
    ("items", "types"),
    [
        ("x, x + 1, s, NULL, st.f", ["int", "int", "string", "void", "int"]),
        ("k * 2 AS n, x / y AS m, CAST(x AS string) AS t, f(x) AS u", ["bigint", "double", "string", None]),
    ],
)
def test_types_are_known_where_the_rules_cover_them(items: str, types: list[str | None]) -> None:
    assert [field.type for field in built(f"SELECT {items} FROM a").fields] == types


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("x", "k", "bigint"),
        ("k", "d", "decimal(22,2)"),
        ("d", "CAST(x AS double)", "double"),
        ("k", "CAST(x AS float)", "double"),
        ("NULL", "d", "decimal(10,2)"),
        ("k", "CAST(f(x) AS int)", "bigint"),
        ("CAST(NULL AS date)", "CAST(NULL AS timestamp)", "timestamp"),
    ],
)
def test_branches_are_cast_to_their_common_type(left: str, right: str, expected: str) -> None:
    assert [
        field.type for field in built(f"SELECT {left} FROM b UNION ALL SELECT {right} FROM b").fields
    ] == [expected]


@pytest.mark.parametrize(
    ("left", "right"),
    [("s", "x"), ("f(x)", "g(x)"), ("st", "x"), ("CAST(x AS decimal(38,0))", "CAST(x AS decimal(38,20))")],
)
def test_branches_without_a_common_type_are_refused(left: str, right: str) -> None:
    with pytest.raises(ViewError, match="write CAST"):
        built(f"SELECT {left} FROM a UNION ALL SELECT {right} FROM a")


def test_a_query_that_doubles_itself_is_refused() -> None:
    doubled = ", ".join(f"v{n + 1} AS (SELECT l.k FROM v{n} l, v{n} r WHERE l.k = r.k)" for n in range(40))
    with pytest.raises(ViewError, match="reads more than 200 sources"):
        built(f"WITH v0 AS (SELECT k FROM a), {doubled} SELECT * FROM v40")
