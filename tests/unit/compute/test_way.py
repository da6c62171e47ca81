"""How a view is computed: Spark's own plan unless a clear gain is expected; time and memory of the ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.compute.cost import MOST_ROUNDS, Machine, TreeCost
from spillway.compute.fuse import resident_bytes
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation
from spillway.compute.tree import Segment
from spillway.compute.trees.choice import choose
from spillway.compute.unit_costs import COLUMNAR
from spillway.compute.way import (
    COLUMNS,
    SPARK,
    STATEMENTS,
    STATISTICS_SHARE,
    as_written,
    decide,
    expected_seconds,
    joined_on_several_keys,
    spark_seconds,
    statistics_seconds,
)


def chain(rows: list[float], share: float = 1e-6) -> JoinGraph:
    relations = tuple(Relation(f"r{n}", size, 200.0) for n, size in enumerate(rows))
    classes = tuple(JoinKey((n, n + 1), {(n, n + 1): share}, f"k{n}") for n in range(len(rows) - 1))
    return JoinGraph(relations, classes)


def test_a_way_needs_a_clear_gain() -> None:
    for seconds, way in (
        ({COLUMNS: 0.5, STATEMENTS: 0.1}, COLUMNS),
        ({COLUMNS: 0.9, STATEMENTS: 0.1}, STATEMENTS),
        ({COLUMNS: 0.9, STATEMENTS: 0.9}, SPARK),
        ({}, SPARK),
    ):
        decision = decide(seconds, 1.0, {} if seconds else {COLUMNS: "columns: keys are text"})
        assert decision.way == way
        assert ("no clear gain" in decision.reason) == (way == SPARK)
    assert "keys are text" in decision.reason


def test_relations_wait_for_a_key_as_in_spark() -> None:
    """`FROM part, supplier, lineitem`: the first two have no key in common."""
    classes = (JoinKey((0, 2), {(0, 2): 0.1}), JoinKey((1, 2), {(1, 2): 0.1}))
    graph = JoinGraph(tuple(Relation(name, 10.0) for name in "psl"), classes)
    assert as_written(graph) == Segment(0, (2, 1))
    assert joined_on_several_keys(graph) is None
    both = JoinGraph(graph.relations, (*classes, JoinKey((1, 2), {(1, 2): 0.1})))
    assert joined_on_several_keys(both) == ("s", "l")


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=8), st.integers(1, 64))
def test_statistics_take_a_small_part_of_the_expected_time(rows: list[int], processors: int) -> None:
    expected = expected_seconds(rows, processors)
    assert statistics_seconds(expected) <= max(0.1, STATISTICS_SHARE * expected)


@pytest.mark.parametrize("rows", [[1e8, 1e8], [1e7, 1e8, 5e7]])
def test_a_partitioned_build_takes_no_longer_on_more_processors(rows: list[float]) -> None:
    graph = chain(rows)
    times = []
    for processors in (2, 4, 8, 64):
        model = TreeCost(graph, None, Machine(processors, replicate_bytes=0))
        tree = as_written(graph)
        assert not any(model.replicated(tree))
        times.append(model.seconds(tree))
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0] / 4


@given(
    st.lists(st.sampled_from([1.0, 1e3, 1e5, 2e6]), min_size=2, max_size=5),
    st.integers(1, 8),
    st.floats(1e5, 1e9),
    st.booleans(),
)
def test_partitions_keep_the_limit_or_their_size_says_that_they_cannot(
    rows: list[float], processors: int, limit: float, pages: bool
) -> None:
    graph = chain(rows)
    machine = Machine(processors, limit, limit / 2, table_page_bytes=float(1 << 20) if pages else 0.0)
    model, tree = TreeCost(graph, None, machine), as_written(graph)
    whole = sum(
        model.table_bytes(1 << n)
        for n, kept in zip(range(1, len(rows)), model.replicated(tree), strict=True)
        if kept
    )
    held = model.resident_bytes([tree])
    assert held >= whole
    assert model.partitions([tree]) % processors == 0
    is_divided_enough = model.partitions([tree]) < processors * MOST_ROUNDS
    if not pages and whole < limit and is_divided_enough:
        assert held <= limit * 1.001
    assert resident_bytes(model, tree) == held
    assert spark_seconds(model) > 0


def test_a_large_result_costs_the_same_whoever_joins() -> None:
    """Columns must not lose to Spark only because their estimate has the result in it."""
    graph = chain([2e4] * 8, share=6.2e-5)
    spark = spark_seconds(TreeCost(graph))
    columns = TreeCost(graph, None, Machine(by_columns=True, replicate_bytes=float("inf")))
    result = columns.cardinality.rows(graph.everything) * columns.cardinality.row_bytes(graph.everything)
    assert result * COLUMNAR.keep > 0.5
    assert spark > result * COLUMNAR.keep
    assert decide({COLUMNS: choose(columns).seconds}, spark, {}).way == COLUMNS


def test_a_small_limit_cannot_hold_the_pages_of_one_table() -> None:
    graph = chain([1e5, 1e5])
    model = TreeCost(graph, None, Machine(2, 0.7e6, 0.7e6, table_page_bytes=float(1 << 20)))
    assert resident_bytes(model, as_written(graph)) > 0.7e6
