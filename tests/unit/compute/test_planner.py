"""The choice of a plan: which way for which facts, within which memory, and what a run teaches. No Spark."""

from dataclasses import replace

import pytest

from spillway.compute.compute_view import read_view
from spillway.compute.config import ComputeConfig
from spillway.compute.planner import FREE_SHARE, HEAP_SHARE, PlanFacts, Resources, choose_plan
from spillway.compute.sketch import KeySketch, RelationStatistics
from spillway.compute.trees.choice import choose
from spillway.compute.way import COLUMNS, SPARK, STATEMENTS
from spillway.errors import BudgetError, JobError
from spillway.model.schema import parse_ddl
from spillway.model.view import View

GIB = float(1 << 30)
RESOURCES = Resources(processors=4, heap_bytes=4 * GIB, free_bytes=8 * GIB)


def facts(*rows: int, config: ComputeConfig | None = None, keys: int = 1, columns: bool = True) -> PlanFacts:
    """A chain of relations with these rows; neighbours share `keys` key columns."""
    catalog, joins = {}, []
    for number in range(len(rows)):
        columns_of = [f"k{number}_{key} bigint, k{number + 1}_{key} bigint" for key in range(keys)]
        catalog[f"r{number}"] = parse_ddl(", ".join([*columns_of, "p string"]))
        on = [f"r{number - 1}.k{number}_{key} = r{number}.k{number}_{key}" for key in range(keys)]
        joins.append(f"r{number} ON {' AND '.join(on)}" if number else "r0")
    view = read_view(View.sql("SELECT r0.p FROM " + " JOIN ".join(joins)), catalog)
    statistics = [
        RelationStatistics(
            count,
            64.0,
            {column.name: KeySketch(None, count, float(count)) for column in relation.columns},
        )
        for count, relation in zip(rows, view.relations, strict=True)
    ]
    return PlanFacts(view, statistics, RESOURCES, config or ComputeConfig(), can_join_columns=columns)


def test_many_small_relations_are_joined_by_columns() -> None:
    plan = choose_plan(facts(*[3_000] * 8))
    assert plan.way == COLUMNS
    assert plan.cost.machine.by_columns
    assert not plan.statements.machine.by_columns
    assert "times as fast as Spark's own plan" in plan.reason
    assert plan.refusals == {}
    assert plan.column_limit_bytes == RESOURCES.free_bytes * FREE_SHARE
    assert plan.statements.machine.memory_bytes == RESOURCES.heap_bytes * HEAP_SHARE


def test_few_relations_are_left_to_spark() -> None:
    plan = choose_plan(facts(3_000, 3_000))
    assert plan.way == SPARK
    assert plan.reason.startswith("no clear gain is expected from another way; columns: estimated")
    assert list(plan.refusals) == [COLUMNS, STATEMENTS]
    assert plan.cost is plan.statements


def test_a_bad_order_of_joins_is_worth_statements() -> None:
    """As written, the first join multiplies rows; another order begins with a join that leaves few."""
    given = facts(10**6, 10**6, 20, columns=False, config=ComputeConfig(selectivity={"r0 r1": 1e-4}))
    plan = choose_plan(given)
    assert plan.way == STATEMENTS
    assert "times as fast" in plan.reason
    guess = choose_plan(replace(given, guessed=("r1",)))
    assert guess.way == SPARK
    assert "r1 are not local Parquet files" in guess.refusals[STATEMENTS]


def test_keys_that_may_depend_on_each_other_are_left_to_spark() -> None:
    plan = choose_plan(facts(10**6, 10**6, 20, keys=2, columns=False))
    assert plan.way == SPARK
    assert plan.refusals[STATEMENTS].startswith("several keys join r0 and r1")


def test_spark_is_asked_for() -> None:
    plan = choose_plan(facts(*[3_000] * 8, config=ComputeConfig(way="spark")))
    assert (plan.way, plan.reason) == (SPARK, "asked for")
    assert plan.report()["way"] == SPARK


@pytest.mark.parametrize(
    "config", [ComputeConfig(way="tree"), ComputeConfig(tree="zigzag"), ComputeConfig(memory_bytes=1 << 28)]
)
def test_a_tree_runs_if_it_is_needed(config: ComputeConfig) -> None:
    """Also where Spark's own plan would be chosen."""
    plan = choose_plan(facts(3_000, 3_000, config=config))
    assert plan.way == COLUMNS
    assert plan.reason == "a tree or a memory limit was given, and tasks can join columns"
    plan = choose_plan(facts(3_000, 3_000, config=config, columns=False))
    assert plan.way == STATEMENTS
    assert plan.reason.startswith("columns: not all relations are plain local Parquet files")
    assert plan.algorithm == config.tree or config.tree == "chosen"


def test_columns_that_do_not_fit_are_refused() -> None:
    given = facts(*[200_000] * 4, config=ComputeConfig(memory_bytes=100 << 20))
    needed = choose_plan(replace(given, config=ComputeConfig(way="tree"))).needed_bytes()
    assert needed > 100 << 20
    plan = choose_plan(given)
    assert plan.way == STATEMENTS
    assert plan.reason == f"columns: tasks need about {needed / 1e6:.1f} MB of {(100 << 20) / 1e6:.1f} MB"


def test_too_many_rows_for_python() -> None:
    config, resources = ComputeConfig(way="tree"), replace(RESOURCES, free_bytes=1e15)
    plan = choose_plan(replace(facts(*[200_000_000] * 3, config=config), resources=resources))
    assert (plan.way, plan.reason) == (STATEMENTS, "columns: too many rows for tasks in Python")


def test_a_limit_that_cannot_be_kept_is_refused() -> None:
    given = facts(3_000, 3_000, config=ComputeConfig(memory_bytes=700_000), columns=False)
    given = replace(given, resources=replace(RESOURCES, table_page_bytes=float(1 << 20)))
    with pytest.raises(BudgetError, match=r"memory = 0.7 MB is too small: .* give at least that"):
        choose_plan(given)


def test_without_columns_a_tree_runs_as_statements() -> None:
    """A run by columns stopped: the plan is asked for again, and says why."""
    given = facts(*[3_000] * 8)
    assert choose_plan(given).way == COLUMNS
    plan = choose_plan(given, columns_failed="tasks would hold too much")
    assert (plan.way, plan.reason) == (STATEMENTS, "columns: tasks would hold too much")
    small = ComputeConfig(memory_bytes=100)
    with pytest.raises(BudgetError, match="is too small"):
        choose_plan(replace(given, config=small), columns_failed="tasks would hold too much")


@pytest.mark.parametrize("columns", [True, False])
def test_factors_of_earlier_runs_correct_the_estimate(columns: bool) -> None:
    """A run measures three times the estimate: the next plan estimates that."""
    given = facts(*[20_000] * 3, config=ComputeConfig(way="tree"), columns=columns)
    plan = choose_plan(given)
    factor = plan.learned_factor(3 * plan.needed_bytes())
    assert factor == pytest.approx(3)
    assert plan.learned_factor(0) is None
    corrected = choose_plan(replace(given, memory_factors={plan.way: factor}))
    assert corrected.needed_bytes() == pytest.approx(3 * plan.needed_bytes())
    assert corrected.learned_factor(corrected.needed_bytes()) == pytest.approx(3)


def test_the_same_facts_give_the_same_plan() -> None:
    given = facts(3_000, 20, 500, 4_000, config=ComputeConfig(way="tree", processors=7))
    first, second = choose_plan(given), choose_plan(given)
    assert first.report() == second.report()
    assert first.report()["processors"] == 7


def test_another_tree_runs_as_its_costs_say() -> None:
    plan = choose_plan(facts(*[3_000] * 8))
    by_columns = plan.with_tree(choose(plan.cost, "zigzag").tree)
    assert (by_columns.way, by_columns.column_limit_bytes) == (COLUMNS, None)
    as_sql = plan.with_tree(choose(plan.statements, "zigzag").tree, plan.statements)
    assert (as_sql.way, as_sql.cost) == (STATEMENTS, plan.statements)
    assert as_sql.spark_seconds == plan.spark_seconds
    assert plan.way == COLUMNS


def test_sizes_of_unknown_relations_are_refused() -> None:
    with pytest.raises(JobError, match=r"\[compute.rows\] x is"):
        choose_plan(facts(10, 10, config=ComputeConfig(rows={"x": 1.0})))
