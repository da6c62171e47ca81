"""Which tree a view gets by statistics: the joins of TPC-H, and when statistics do not decide."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.plan.operators.tree import TreePlan, shape_text
from spillway.plan.operators.tree_choice import Shape
from spillway.plan.rules.input_statistics import AskedInput, InputStatistics, NoStatistics
from spillway.plan.rules.planner import plan_view
from spillway.plan.rules.tree_choice import BY_KEYS, BY_SIZES, GIVEN, KEPT
from spillway.workload import QUERIES

ROWS = MappingProxyType(
    {
        "customer": 150_000, "lineitem": 6_000_000, "nation": 25.0, "orders": 1_500_000,
        "part": 200_000, "partsupp": 800_000, "region": 5.0, "supplier": 10_000,
    }
)  # fmt: skip
DISTINCT = MappingProxyType(
    {
        "custkey": ROWS["customer"], "orderkey": ROWS["orders"], "partkey": ROWS["part"],
        "suppkey": ROWS["supplier"], "nationkey": 25.0, "regionkey": 5.0,
    }
)  # fmt: skip
SHARES = MappingProxyType(
    {"p_name": 0.054, "r_name": 0.2, "o_orderdate": 0.3, "l_shipdate": 0.3, "p_type": 0.0067, "n_name": 0.04}
)
"""What filters on these columns let pass, about."""
CATALOG = {
    "customer": parse_ddl(
        "c_custkey long, c_nationkey long, c_mktsegment string, c_name string, c_acctbal double, "
        "c_address string, c_phone string, c_comment string"
    ),
    "lineitem": parse_ddl(
        "l_orderkey long, l_partkey long, l_suppkey long, l_quantity double, l_extendedprice double, "
        "l_discount double, l_shipdate date, l_returnflag string"
    ),
    "nation": parse_ddl("n_nationkey long, n_regionkey long, n_name string"),
    "orders": parse_ddl("o_orderkey long, o_custkey long, o_orderdate date, o_shippriority int"),
    "part": parse_ddl("p_partkey long, p_name string, p_type string"),
    "partsupp": parse_ddl("ps_partkey long, ps_suppkey long, ps_supplycost double, ps_availqty double"),
    "region": parse_ddl("r_regionkey long, r_name string"),
    "supplier": parse_ddl("s_suppkey long, s_nationkey long"),
}


def tpch(inputs: Sequence[AskedInput]) -> list[InputStatistics]:
    """TPC-H at scale factor 1."""
    found = []
    for input_ in inputs:
        rows = ROWS[input_.source]
        share = next((s for name, s in SHARES.items() if name in (input_.filter or "")), 1.0)
        distinct = {n: DISTINCT[key.strip("`").partition("_")[2]] for n, key in input_.keys.items()}
        found.append(InputStatistics(rows * share, rows, distinct))
    return found


def unfiltered(inputs: Sequence[AskedInput]) -> list[InputStatistics]:
    """The same if no filter can be tested."""
    return [replace(of_input, rows=of_input.all_rows) for of_input in tpch(inputs)]


def planned(query: str, statistics: object = tpch) -> TreePlan:
    plan = plan_view(View.sql(QUERIES[query]), CATALOG, statistics)  # type: ignore[arg-type]
    assert isinstance(plan, TreePlan)
    return plan


def keys_between(plan: TreePlan, one: str, other: str) -> set[int]:
    """The classes of the join in which two inputs meet."""
    numbers = {input_.name: number for number, input_ in enumerate(plan.inputs)}
    wanted = {numbers[one], numbers[other]}
    for join in plan.joins:
        if wanted <= {leaf for child in join.children for leaf in plan.leaves(child)}:
            return set(join.classes)
    raise AssertionError(f"{one} and {other} never meet")


@pytest.mark.parametrize("statistics", [tpch, unfiltered])
def test_lineitem_and_partsupp_are_joined_on_both_keys(statistics: object) -> None:
    plan = planned("q9_columns", statistics)
    line, supply = (number for number, input_ in enumerate(plan.inputs) if input_.name in ("l", "ps"))
    shared = set(plan.key_classes[line]) & set(plan.key_classes[supply])
    assert len(shared) == 2
    assert keys_between(plan, "l", "ps") == shared
    assert all(join.residual is None for join in plan.joins)
    assert plan.choice is not None
    assert plan.choice.chosen is not None
    assert plan.choice.chosen.candidates < 3 * ROWS["lineitem"]


def test_without_statistics_the_query_would_test_eighty_candidates_per_line() -> None:
    plan = plan_view(View.sql(QUERIES["q9_columns"]), CATALOG)
    assert isinstance(plan, TreePlan)
    assert shape_text(plan.shape()) == "(((p (s l ps)) o) n)"


@pytest.mark.parametrize("query", ["q3", "q5", "q7", "q8", "q10"])
@pytest.mark.parametrize("statistics", [tpch, unfiltered])
def test_candidates_stay_near_the_number_of_rows(query: str, statistics: object) -> None:
    plan = planned(query, statistics)
    assert plan.choice is not None
    chosen, runner_up = plan.choice.chosen, plan.choice.runner_up
    assert chosen is not None
    assert runner_up is not None
    rows = sum(ROWS[input_.source] for input_ in plan.inputs)
    assert chosen.candidates < 3 * rows
    assert chosen.work <= 1.01 * runner_up.work + 0.02 * rows
    assert chosen.shape != runner_up.shape


def test_customers_and_suppliers_do_not_meet_by_nation_alone() -> None:
    """In Q5 that alone would be 60 million pairs."""
    plan = planned("q5", unfiltered)
    customer, supplier = (n for n, input_ in enumerate(plan.inputs) if input_.name in ("c", "s"))
    nation = set(plan.key_classes[customer]) & set(plan.key_classes[supplier])
    assert len(nation) == 1
    assert keys_between(plan, "c", "s") - nation


ABC = dict.fromkeys("abcd", parse_ddl("x long, y long, z long, v long"))
PAIR = "SELECT a.v FROM a, b, c WHERE a.x = b.x AND b.x = c.x AND a.y = b.y"


def known(rows: Mapping[str, float], **distinct: float) -> object:
    def statistics(inputs: Sequence[AskedInput]) -> list[InputStatistics]:
        return [
            InputStatistics(
                rows[i.name], rows[i.name], {n: distinct[k.strip("`")] for n, k in i.keys.items()}
            )
            for i in inputs
        ]

    return statistics


def test_inputs_that_share_two_keys_are_joined_on_both_even_if_one_key_joins_all() -> None:
    few = known({"a": 1e5, "b": 1e5, "c": 1e3}, x=100, y=1000)
    plan = plan_view(View.sql(PAIR), ABC, few)  # type: ignore[arg-type]
    assert isinstance(plan, TreePlan)
    assert shape_text(plan.shape()) == "((a b) c)"
    assert [len(join.classes) for join in plan.joins] == [2, 1]
    assert plan.chosen_tree == (("a", "b"), "c")


def test_one_join_stays_where_the_second_key_saves_nothing() -> None:
    unique = known({"a": 1e5, "b": 1e5, "c": 1e5}, x=1e5, y=1e5)
    plan = plan_view(View.sql(PAIR), ABC, unique)  # type: ignore[arg-type]
    assert plan == plan_view(View.sql(PAIR), ABC)
    assert plan.kind == "join"
    assert plan.chosen_tree is None


def test_a_residual_predicate_makes_its_join_smaller() -> None:
    chain = "SELECT a.v FROM a, b, c WHERE a.x = b.x AND b.y = c.y"
    alike = known({"a": 1e4, "b": 1e4, "c": 1e4}, x=1e3, y=1e3)
    for residual, shape in (("a.v < b.v", "((a b) c)"), ("b.v < c.v", "(a (b c))")):
        plan = plan_view(View.sql(f"{chain} AND {residual}"), ABC, alike)  # type: ignore[arg-type]
        assert shape_text(plan.shape()) == shape  # type: ignore[union-attr]


def test_a_filter_that_saves_nothing_decides_between_equal_trees() -> None:
    chain = "SELECT a.v FROM a, b, c WHERE a.x = b.x AND b.y = c.y"
    alike = known({"a": 1e4, "b": 1e4, "c": 1e4}, x=1e4, y=1e4)
    for filter_, shape in (("a.v > 0", "((a b) c)"), ("c.v > 0", "(a (b c))")):
        plan = plan_view(View.sql(f"{chain} AND {filter_}"), ABC, alike)  # type: ignore[arg-type]
        assert shape_text(plan.shape()) == shape  # type: ignore[union-attr]


def asked_for(sql: str, shape: tuple[Shape, ...] | None = None) -> list[AskedInput]:
    asked: list[AskedInput] = []

    def statistics(inputs: Sequence[AskedInput]) -> NoStatistics:
        asked.extend(inputs)
        return NoStatistics("nobody knows")

    plan_view(View.sql(sql), ABC, statistics, shape)
    return asked


def test_inputs_are_described_by_their_source() -> None:
    first, second, third = asked_for(
        "SELECT l.v FROM a l, a r, b WHERE l.x = r.y AND r.x + 1 = b.x AND b.y > 3"
    )
    assert (first.name, first.source, first.filter, first.keys) == ("l", "a", None, {0: "`x`"})
    assert second.keys == {0: "`y`", 1: "`x` + 1"}
    assert (third.source, third.filter) == ("b", "`y` > 3")


def test_nobody_is_asked_where_there_is_nothing_to_choose() -> None:
    for sql in (
        "SELECT a.v FROM a, b WHERE a.x = b.x AND a.y = b.y",
        "SELECT a.v FROM a, b, c WHERE a.x = b.x AND b.x = c.x AND a.y = b.y AND b.y = c.y",
    ):
        assert asked_for(sql) == []
        assert plan_view(View.sql(sql), ABC).choice is None  # type: ignore[union-attr]
    chain = "SELECT a.v FROM a, b, c WHERE a.x = b.x AND b.y = c.y"
    assert asked_for(chain, (("a", "b"), "c")) == []
    assert len(asked_for(chain)) == 3


def test_without_statistics_the_plan_is_as_it_always_was() -> None:
    chain = "SELECT a.v FROM a, b, c, d WHERE a.x = b.x AND b.y = c.y AND c.z = d.z"
    plan = plan_view(View.sql(chain), ABC, lambda _: NoStatistics("a is a DataFrame"))
    assert plan.fingerprint == plan_view(View.sql(chain), ABC).fingerprint
    assert plan.choice is not None  # type: ignore[union-attr]
    assert plan.choice.why == f"{BY_KEYS}; no statistics: a is a DataFrame"  # type: ignore[union-attr]
    assert plan.chosen_tree is None


def test_a_given_tree_wins_over_a_kept_one_and_that_over_statistics() -> None:
    chain = View.sql("SELECT a.v FROM a, b, c WHERE a.x = b.x AND b.y = c.y")
    statistics = known({"a": 1e6, "b": 1e3, "c": 10}, x=10, y=1e3)
    kept, given = (("a", "b"), "c"), ("a", ("b", "c"))
    by_sizes = plan_view(chain, ABC, statistics)  # type: ignore[arg-type]
    assert (by_sizes.choice.why, by_sizes.chosen_tree) == (BY_SIZES, given)  # type: ignore[union-attr]
    by_checkpoint = plan_view(chain, ABC, statistics, kept)  # type: ignore[arg-type]
    assert by_checkpoint.choice.why == KEPT  # type: ignore[union-attr]
    assert shape_text(by_checkpoint.shape()) == "((a b) c)"  # type: ignore[union-attr]
    by_user = plan_view(chain.with_tree(*given), ABC, statistics, kept)  # type: ignore[arg-type]
    assert by_user.choice.why == GIVEN  # type: ignore[union-attr]
    assert by_user.fingerprint == by_sizes.fingerprint


def test_a_kept_tree_gives_the_same_plan() -> None:
    """Also in the numbers of joins and inputs, which state on disk has."""
    plan = planned("q9_columns")
    kept = plan_view(View.sql(QUERIES["q9_columns"]), CATALOG, kept=plan.chosen_tree)
    assert kept == plan
