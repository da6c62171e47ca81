"""What the planner pushes down, what becomes the key, and what stays above the join."""

import pickle

import pytest

from spillway.errors import ViewError
from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.plan.expression.nodes import Call, Cast, ColumnRef, Literal
from spillway.plan.operators.join import JoinPlan
from spillway.plan.rules.planner import plan_view

CATALOG = {
    "a": parse_ddl("k long, j int, id long, x int, z int, s string, st struct<f:int,g:string>"),
    "b": parse_ddl("k long, j int, id long, y int, s string"),
    "c": parse_ddl("k long, id long, w double, t string"),
}


def plan(sql: str) -> JoinPlan:
    return plan_view(View.sql(sql), CATALOG)


def kept(one: JoinPlan, index: int) -> list[str]:
    return [column.expression for column in one.inputs[index].columns]


def test_the_view_of_the_issue() -> None:
    one = plan("SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a, b, c WHERE a.k = b.k AND b.k = c.k")
    assert [(i.name, i.source, i.filter, i.keys) for i in one.inputs] == [
        (name, name, None, ("`k`",)) for name in "abc"
    ]
    assert [output.value for output in one.outputs] == [ColumnRef(0, 0), ColumnRef(1, 0), ColumnRef(2, 0)]
    assert one.residual is None
    assert one.key_types == ("bigint",)


def test_filters_and_projections_go_to_their_input_in_order() -> None:
    one = plan(
        "SELECT upper(a.s) AS u, a.x + 1 AS n FROM a JOIN b ON a.k = b.k AND b.y > 1 "
        "WHERE a.z <> 0 AND a.x / a.z > 2 AND (b.y = 2 OR b.y = 3)"
    )
    assert one.inputs[0].filter == "`z` <> 0 AND `x` / `z` > 2"
    assert one.inputs[1].filter == "`y` > 1 AND (`y` = 2 OR `y` = 3)"
    assert kept(one, 0) == ["upper(`s`)", "`x` + 1"]
    assert kept(one, 1) == []


def test_equal_expressions_are_kept_once_in_any_case() -> None:
    one = plan("SELECT A.ID AS p, a.`id` AS q, UPPER(a.S) AS r, upper(a.s) AS t FROM a JOIN b ON a.k = b.k")
    assert kept(one, 0) == ["`id`", "upper(`s`)"]


def test_several_key_parts_and_expressions_as_keys() -> None:
    one = plan("SELECT a.id FROM a JOIN b ON lower(a.s) = b.s AND a.k + 1 = b.k")
    assert one.inputs[0].keys == ("lower(`s`)", "`k` + 1")
    assert one.inputs[1].keys == ("`s`", "`k`")
    assert one.key_types == (None, None)


def test_an_equality_that_not_all_inputs_share_is_residual() -> None:
    one = plan("SELECT a.id FROM a, b, c WHERE a.k = b.k AND a.j = b.j AND b.k = c.k")
    assert [i.keys for i in one.inputs] == [("`k`",)] * 3
    assert one.residual == Call("=", (ColumnRef(0, 1), ColumnRef(1, 0)))


def test_two_terms_of_one_input_in_one_class_are_a_filter() -> None:
    one = plan("SELECT a.id FROM a, b WHERE a.k = b.k AND a.k = b.j")
    assert one.inputs[1].filter == "`k` = `j`"


def test_classes_that_meet_late_become_one_key() -> None:
    one = plan("SELECT w.id FROM a w, a x, a y, a z WHERE w.k = x.k AND y.k = z.k AND x.k = z.k")
    assert [i.keys for i in one.inputs] == [("`k`",)] * 4


def test_an_integer_equality_in_a_double_key_stays_exact() -> None:
    one = plan("SELECT a.id FROM a, c, b WHERE a.k = c.w AND a.k = b.k")
    assert one.key_types == ("double",)
    assert one.residual == Call("=", (ColumnRef(0, 1), ColumnRef(2, 0)))


def test_using_shows_its_column_once() -> None:
    assert plan("SELECT k, y, w FROM b JOIN c USING (k)").outputs[0].value == ColumnRef(0, 0)
    catalog = {"l": parse_ddl("p int, k int"), "r": parse_ddl("q int, K int")}
    one = plan_view(View.sql("SELECT * FROM l JOIN r USING (k)"), catalog)
    assert [output.name for output in one.outputs] == ["k", "p", "q"]


def test_struct_fields_are_values_of_their_input() -> None:
    one = plan("SELECT a.st.f, st.G AS g FROM a JOIN b ON a.st.f = b.y")
    assert kept(one, 0) == ["`st`.`f`", "`st`.`g`"]
    assert one.inputs[0].keys == ("`st`.`f`",)
    assert [output.name for output in one.outputs] == ["f", "g"]


def test_self_join() -> None:
    one = plan("SELECT p.id AS p_id, q.id AS q_id FROM a p JOIN a q ON p.k = q.k AND p.id < q.id")
    assert [(i.name, i.source) for i in one.inputs] == [("p", "a"), ("q", "a")]
    assert one.residual == Call("<", (ColumnRef(0, 0), ColumnRef(1, 0)))


def test_constants_cost_no_state() -> None:
    one = plan("SELECT 1 AS one, 'x' AS s, a.id FROM a JOIN b ON a.k = b.k WHERE 1 = 1")
    assert [output.value for output in one.outputs[:2]] == [Literal(1, "int"), Literal("x", "string")]
    assert one.inputs[0].filter == "1 = 1"


def test_a_guarded_division_keeps_its_columns() -> None:
    one = plan("SELECT CASE WHEN b.y > 0 THEN a.x / a.z ELSE 0D END AS r FROM a JOIN b ON a.k = b.k")
    assert kept(one, 0) == ["`x`", "`z`"]
    one = plan("SELECT CASE WHEN b.y > 0 THEN a.x + a.z END AS r FROM a JOIN b ON a.k = b.k")
    assert kept(one, 0) == ["`x` + `z`"]
    one = plan("SELECT CASE WHEN b.y > 0 THEN mod(a.x, a.z) END AS r FROM a JOIN b ON a.k = b.k")
    assert kept(one, 0) == ["`x`", "`z`"]


def test_functions_of_several_inputs() -> None:
    one = plan(
        "SELECT substr(a.s || b.s, 2, 3) AS part, trim(LEADING 'x' FROM a.s || b.s) AS cut, "
        "a.s || b.s NOT LIKE 'a#%' ESCAPE '#' AS other, a.x DIV b.y AS times, nullif(1, a.x + b.y) AS n "
        "FROM a JOIN b ON a.k = b.k"
    )
    joined = Call("||", (ColumnRef(0, 0), ColumnRef(1, 0)))
    two, three = Literal(2, "int"), Literal(3, "int")
    x, y = ColumnRef(0, 1), ColumnRef(1, 1)
    pattern, escape = Literal("a#%", "string"), Literal("#", "string")
    number = Cast(Literal(1, "int"), "int")
    assert [output.value for output in one.outputs] == [
        Call("substring", (joined, two, three)),
        Call("ltrim", (joined, Literal("x", "string"))),
        Call("not", (Call("like", (joined, pattern, escape)),)),
        Call("div", (x, y)),
        Call("case", (Call("=", (number, Call("+", (x, y)))), Literal(None, "void"), number)),
    ]


def test_spelling_does_not_change_the_fingerprint() -> None:
    first = plan("SELECT a.id AS i, a.x + b.y AS n FROM a JOIN b ON a.k = b.k WHERE upper(a.s) = 'Q'")
    second = plan("select  A.id  as i ,a.X+B.y n\nfrom a, b -- note\nwhere a.k=b.k and UPPER(A.s)='Q'")
    assert first == second
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a.id AS i FROM a JOIN b ON a.k = b.k WHERE a.s = 'q'",
        "SELECT a.id AS I2 FROM a JOIN b ON a.k = b.k WHERE a.s = 'Q'",
        "SELECT a.id AS i FROM a JOIN b ON a.k = b.j WHERE a.s = 'Q'",
        "SELECT a.x AS i FROM a JOIN b ON a.k = b.k WHERE a.s = 'Q'",
        "SELECT a.id AS i FROM a JOIN b ON a.k = b.k WHERE a.s = 'Q' AND a.id < b.id",
    ],
)
def test_another_meaning_has_another_fingerprint(other: str) -> None:
    view = "SELECT a.id AS i FROM a JOIN b ON a.k = b.k WHERE a.s = 'Q'"
    assert plan(view).fingerprint != plan(other).fingerprint


def test_a_built_view_is_the_same_as_its_sql() -> None:
    start = View.of("a p").join("b v", on="p.k = v.k -- the key")
    built = start.where("p.x > 10 OR p.x < 0").where("v.y <> 1").select("p.id", "v.y AS vol")
    written = (
        "SELECT p.id, v.y AS vol FROM a p JOIN b v ON p.k = v.k WHERE (p.x > 10 OR p.x < 0) AND v.y <> 1"
    )
    assert plan_view(built, CATALOG) == plan(written)
    assert start.items == ()
    using = View.of("b").join("c", using="k").select("k", "w")
    assert plan_view(using, CATALOG) == plan(using.text)


def test_builder_methods_need_a_built_view() -> None:
    with pytest.raises(ViewError, match=r"where\(\) needs a view started with View.of"):
        View.sql("SELECT 1").where("x")
    with pytest.raises(ViewError, match="both on and using"):
        View.of("a").join("b", on="a.k = b.k", using="k")


def test_a_plan_survives_pickling() -> None:
    one = plan("SELECT a.id, CAST(a.x + b.y AS string) || 'x' AS n FROM a JOIN b ON a.k = b.k")
    assert pickle.loads(pickle.dumps(one)) == one
