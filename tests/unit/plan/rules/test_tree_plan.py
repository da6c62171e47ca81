"""Which joins a tree has, what each tests, and what travels between them."""

import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.expression.nodes import describe
from spillway.plan.operators.tree import TreePlan, shape_text
from spillway.plan.operators.tree_layout import GroupNumber, KeyHash, KeyValue, LeafColumn, layout
from spillway.plan.rules.planner import plan_view

COLUMNS = (Column("x", "bigint"), Column("y", "bigint"), Column("z", "bigint"), Column("s", "string"))
CATALOG = dict.fromkeys("abcdefgh", COLUMNS)


def tree(sql: str, *parts: object) -> TreePlan:
    view = View.sql(sql)
    plan = plan_view(view.with_tree(*parts) if parts else view, CATALOG)
    assert isinstance(plan, TreePlan)
    return plan


HIGH = (("a", "b", "c"), "d"), "e"
PAPER = (
    "SELECT a.y AS m, e.y AS n FROM a, b, c, d, e WHERE a.x = b.x AND b.x = c.x AND c.y = d.x AND d.y = e.x"
)


def test_one_key_joins_as_many_inputs_as_have_it() -> None:
    assert shape_text(tree(PAPER).shape()) == "((a b c) (d e))"


@pytest.mark.parametrize(
    ("conditions", "shape"),
    [
        ("a.x = b.x AND b.y = c.x AND c.y = d.x", "((a b) (c d))"),
        ("a.x = b.x AND b.y = c.x AND c.y = d.x AND d.y = e.x", "(((a b) (c d)) e)"),
        ("a.x = b.x AND a.y = c.x AND a.z = d.x", "(((a b) c) d)"),
        ("a.x = b.x AND c.x = d.x AND d.x = e.x AND b.y = c.y", "((a b) (c d e))"),
    ],
)
def test_a_tree_has_few_levels(conditions: str, shape: str) -> None:
    names = sorted(set(conditions) & set("abcde"))
    plan = tree(f"SELECT a.y AS m FROM {', '.join(names)} WHERE {conditions}")
    assert shape_text(plan.shape()) == shape


def test_a_tree_can_be_bushy() -> None:
    sql = "SELECT a.y AS m FROM a, b, c, d WHERE a.x = b.x AND c.x = d.x AND b.y = d.y"
    assert shape_text(tree(sql).shape()) in ("((a b) (c d))", "(((a b) d) c)")


@pytest.mark.parametrize(
    ("parts", "shape"),
    [((("a", "b"), "c"), "((a b) c)"), ((("b", "c"), "a"), "(a (b c))")],
)
def test_the_user_may_fix_the_tree(parts: tuple[object, ...], shape: str) -> None:
    plan = tree("SELECT a.y AS m FROM a, b, c WHERE a.x = b.x AND b.x = c.x", *parts)
    assert shape_text(plan.shape()) == shape
    assert plan.fingerprint != tree("SELECT a.y AS m FROM a, b, c WHERE a.x = b.x AND b.x = c.x",
                                    ("a", "c"), "b").fingerprint  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((("a", "c"), "b", "d", "e"), "no key is shared by all parts of (a c b d e)"),
        (("a", "b"), "c, d, e is missing"),
        ((("a", "b", "c"), ("d", "e"), "q"), "unknown input q; the view has a, b"),
        ((("a", "b", "c"), ("d", "e", "a")), "a appears twice"),
        ((("a", "b", "c"), ("d",), "e"), "a join has 1 parts"),
        ((("a", "b", "c"), ("d", 3), "e"), "3 is neither the name"),
    ],
)
def test_a_tree_that_is_none_is_refused(parts: tuple[object, ...], words: str) -> None:
    with pytest.raises(ViewError) as refused:
        tree(PAPER, *parts)
    text = str(refused.value)
    assert text.startswith("tree:")
    assert words in text or "no key is shared" in text


def test_a_cycle_becomes_a_residual_predicate_of_the_join_that_closes_it() -> None:
    plan = tree("SELECT a.y AS m FROM a, b, c WHERE a.x = b.x AND b.y = c.x AND c.y = a.y")
    root = plan.joins[-1]
    assert plan.joins[0].residual is None
    assert root.residual is not None or len(root.classes) == 2


def test_a_class_that_some_children_have_is_tested_where_they_meet() -> None:
    """a.z = c.z follows from both being equal to d.z, and must hold before d is joined by one of them."""
    plan = tree(
        "SELECT a.y AS m FROM a, b, c, d WHERE a.x = b.x AND b.x = c.x AND a.z = d.z AND c.z = d.z",
        ("a", "b", "c"),
        "d",
    )
    assert plan.joins[0].residual is not None
    assert describe(plan.joins[0].residual, plan.column_label) == "a.z = c.z"
    assert plan.joins[1].residual is None


def test_a_predicate_is_tested_at_the_lowest_join_that_has_its_inputs() -> None:
    plan = tree(PAPER + " AND a.z < c.z AND a.z < e.z", *HIGH)
    assert describe(plan.joins[0].residual, plan.column_label) == "a.z < c.z"  # type: ignore[arg-type]
    assert plan.joins[1].residual is None
    assert describe(plan.joins[2].residual, plan.column_label) == "a.z < e.z"  # type: ignore[arg-type]


def test_only_what_is_read_further_up_travels() -> None:
    first, second, third = layout(tree(PAPER, *HIGH), [True, True, True])
    kept = [one.columns for one in first.inputs]
    assert kept == [(LeafColumn(0, 0),), (), (KeyHash(2, 1),)]
    assert second.inputs[0].columns == (LeafColumn(0, 0), GroupNumber(0))
    assert second.inputs[0].hashes == (KeyHash(2, 1),)
    assert third.inputs[0].columns == (LeafColumn(0, 0), GroupNumber(0), GroupNumber(1))
    assert [join for join, _ in third.lineage] == [0, 1]


def test_keys_travel_where_a_hash_does_not_decide() -> None:
    plan = tree("SELECT a.y AS m FROM a, b, c WHERE a.x = b.x AND b.s = c.s")
    _, root = layout(plan, [True, False])
    assert KeyValue(1, 1) in root.inputs[0].columns
    assert root.inputs[1].columns[root.inputs[1].key_columns[0]] == KeyValue(2, 1)
