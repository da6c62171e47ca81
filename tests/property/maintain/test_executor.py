"""The Arrow executor gives the recomputed delta: any view, any strategy, changes that come meanwhile."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.examples import tries
from kit.tables import changes, plus
from spillway.maintain.definition import InputDefinition, OutputDefinition, ViewDefinition
from spillway.maintain.delta import delta_schema, row_schema
from spillway.maintain.execute import Answer, ExecutionMetrics, Executor
from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.plan import MaintenancePlan, MaintenanceQuery, Part, Take, Union
from spillway.maintain.slots import Slots
from spillway.maintain.strategies.registry import STRATEGIES, plan_round
from spillway.maintain.unify import KeySet
from spillway.model.schema import Column

Row = tuple[int | None, int | None]
Bag = Counter[Row]
LARGE = 40_000
"""Does not fit a smallint, so it matches no key of one."""


@st.composite
def views(draw: st.DrawFn) -> ViewDefinition:
    """Chains and stars over columns of several sizes, with filters, a residual condition, expressions."""
    n = draw(st.integers(2, 4))
    ends = list(pairwise(range(n))) if draw(st.booleans()) else [(0, node) for node in range(1, n)]
    if n > 2 and draw(st.booleans()):
        ends.append((1, n - 1))
    pairs = st.lists(st.tuples(*[st.sampled_from("ab")] * 2), min_size=1, max_size=2, unique=True).map(tuple)
    edges = tuple(Edge(a, b, draw(pairs)) for a, b in dict.fromkeys(ends))
    kinds = st.sampled_from(["smallint", "int", "bigint"])
    inputs = tuple(
        InputDefinition(
            f"r{node}",
            f"r{node}",
            (Column("a", draw(kinds)), Column("b", draw(kinds))),
            draw(st.sampled_from([None, None, "c1 <> 1"])),
        )
        for node in range(n)
    )
    plain = [OutputDefinition(f"o{node}", f"c{node}_{node % 2}") for node in range(n)]
    outputs = draw(st.sampled_from([plain, [*plain, OutputDefinition("e", "c0_0 + c1_1")]]))
    residual = draw(st.sampled_from([None, None, "c0_1 <= c1_0"]))
    graph = ViewGraph(tuple(one.alias for one in inputs), edges)
    return ViewDefinition("text", inputs, graph, residual, tuple(outputs))


def rows_of(column_types: Sequence[str]) -> st.SearchStrategy[Row]:
    values = [
        st.none() | (st.integers(0, 2) if kind == "smallint" else st.sampled_from([0, 1, 2, LARGE]))
        for kind in column_types
    ]
    return st.tuples(*values)


def table(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def delta_table(view: ViewDefinition, node: int, delta: Bag) -> pa.Table:
    return table(delta_schema(view.inputs[node].columns), [(*row, weight) for row, weight in delta.items()])


def recomputed(view: ViewDefinition, states: Sequence[Bag]) -> Counter[tuple[Any, ...]]:
    """The view by its definition, with SQL's NULL."""
    kept = [
        [row for row in state.elements() if one.filter is None or row[1] not in (None, 1)]
        for one, state in zip(view.inputs, states, strict=True)
    ]
    place = {"a": 0, "b": 1}
    found: Counter[tuple[Any, ...]] = Counter()
    for rows in product(*kept):

        def holds(edge: Edge, rows: tuple[Row, ...] = rows) -> bool:
            ends = [[rows[n][place[c]] for c in edge.columns(n)] for n in (edge.left, edge.right)]
            return None not in ends[0] and ends[0] == ends[1]

        low, high = rows[0][1], rows[1][0]
        if not all(map(holds, view.graph.edges)):
            continue
        if view.residual and (low is None or high is None or low > high):
            continue
        values: list[Any] = [rows[node][node % 2] for node in view.graph.nodes]
        if len(view.outputs) > len(values):
            one, other = rows[0][0], rows[1][1]
            values.append(None if one is None or other is None else one + other)
        found[tuple(values)] += 1
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@tries(2)  # for each of the strategies
@given(data=st.data())
def test_the_executor_gives_the_recomputed_delta(strategy: str, data: st.DataObject) -> None:
    view = data.draw(views())
    nodes = view.graph.nodes
    kinds = [rows_of([column.type for column in one.columns]) for one in view.inputs]
    before: list[Bag] = [Counter(data.draw(st.lists(kinds[node], max_size=4))) for node in nodes]
    deltas = [data.draw(changes(before[node], kinds[node], 3)) for node in nodes]
    after = [plus(before[node], deltas[node]) for node in nodes]
    later: list[Bag] = [Counter() for _ in nodes]
    sent: list[tuple[int, int, int]] = []

    def ask(node: int, key_sets: Sequence[KeySet]) -> Answer:
        """The source at this moment: others may have written since the last query."""
        later[node] = plus(later[node], data.draw(changes(plus(after[node], later[node]), kinds[node], 1)))
        now = plus(after[node], later[node])
        answers = []
        for one in key_sets:
            wanted = {tuple(row.values()) for row in one.keys.to_pylist()}
            assert len(wanted) == one.keys.num_rows and not any(None in row for row in wanted)
            chosen = [
                r for r in now.elements() if not one.columns or tuple(r[c] for c in one.columns) in wanted
            ]
            answers.append(table(row_schema(view.inputs[node].columns), chosen))
        sent.append((node, sum(one.keys.num_rows for one in key_sets), sum(t.num_rows for t in answers)))
        return Answer(tuple(answers), delta_table(view, node, later[node]))

    executor, metrics = Executor(view), ExecutionMetrics()
    own = [executor.filtered(node, delta_table(view, node, deltas[node])) for node in nodes]
    plan = plan_round(strategy, view.graph, [one.num_rows for one in own])
    found = executor.run(plan, own, ask, metrics)
    executor.close()

    expected = recomputed(view, after)
    expected.subtract(recomputed(view, before))
    assert found.column_names == [*(f"o{place}" for place in range(len(view.outputs))), "weight"]
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert Counter({row[:-1]: row[-1] for row in rows}) == Counter({r: w for r, w in expected.items() if w})
    assert len({row[:-1] for row in rows}) == len(rows) and all(row[-1] for row in rows)
    assert metrics.queries == len(sent) and metrics.queries + metrics.skipped == len(plan.queries)
    assert metrics.keys_sent == sum(keys for _, keys, _ in sent)
    assert metrics.rows_received == sum(received for _, _, received in sent)


def two_inputs(filter_: str | None = None) -> ViewDefinition:
    inputs = tuple(
        InputDefinition(name, name, (Column("a", "bigint"), Column("b", "bigint")), filter_) for name in "rs"
    )
    graph = ViewGraph(("r", "s"), (Edge(0, 1, (("a", "a"),)),))
    return ViewDefinition(
        "text", inputs, graph, None, (OutputDefinition("x", "c0_1"), OutputDefinition("y", "c1_1"))
    )


def test_what_is_joined_is_counted() -> None:
    view = two_inputs()
    executor, metrics = Executor(view), ExecutionMetrics()
    own = [
        executor.filtered(0, delta_table(view, 0, Counter({(1, 5): 1, (2, 6): 1}))),
        executor.filtered(1, delta_table(view, 1, Counter())),
    ]
    state = table(row_schema(view.inputs[1].columns), [(1, 7), (1, 8), (2, 9)])
    plan = plan_round("batch", view.graph, [2, 0])
    found = executor.run(
        plan, own, lambda node, _: Answer((state,), delta_table(view, node, Counter())), metrics
    )
    assert found.num_rows == 3
    assert (metrics.queries, metrics.keys_sent, metrics.rows_received, metrics.joined_rows) == (1, 2, 3, 3)
    assert metrics.skipped == len(plan.queries) - 1


def test_equal_rows_of_a_delta_are_summed_before_the_filter_and_the_connection_ends() -> None:
    view = two_inputs("1 / c1 > 0")
    executor = Executor(view)
    delta = table(delta_schema(view.inputs[0].columns), [(1, 0, 1), (1, 0, -1), (1, 1, 1), (1, 1, 1)])
    assert executor.filtered(0, delta).to_pylist() == [{"c0_0": 1, "c0_1": 1, "weight": 2}]
    executor.close()
    with pytest.raises(duckdb.ConnectionException):
        executor.kept(0, delta)


def test_tables_are_dropped_after_their_last_use() -> None:
    graph = ViewGraph(("r", "s"), (Edge(0, 1, (("a", "a"),)),))
    steps = (
        Take(0, 0, 2),
        MaintenanceQuery(1, (Part(2, 3, False, (0,)), Part(0, 4, False, (0,)))),
        Union((3, 4, 3), 5),
    )
    plan = MaintenancePlan("test", graph, steps, (5, 4), ((0,), (1,), (0,), (0, 1), (0, 1), (0, 1)))
    empty = pa.table({})
    slots = Slots(plan, [empty, empty])
    slots[2] = empty
    slots.spend(steps[0])
    assert sorted(slots) == [0, 1, 2]
    slots[3] = slots[4] = empty
    slots.spend(steps[1])
    assert sorted(slots) == [0, 1, 3, 4]
    slots[5] = empty
    slots.spend(steps[2])
    assert sorted(slots) == [0, 1, 4, 5]


def test_a_source_that_does_not_answer_every_set_of_keys_is_not_believed() -> None:
    view = two_inputs()
    executor = Executor(view)
    own = [
        executor.filtered(node, delta_table(view, node, Counter({(1, 5): 1} if node == 0 else {})))
        for node in (0, 1)
    ]
    plan = plan_round("batch", view.graph, [1, 0])
    with pytest.raises(ValueError, match="zip"):
        executor.run(
            plan, own, lambda node, _: Answer((), delta_table(view, node, Counter())), ExecutionMetrics()
        )
    executor.close()
