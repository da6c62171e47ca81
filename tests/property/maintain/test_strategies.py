"""Every strategy gives the recomputed delta: random views, random changes, changes that come meanwhile."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.examples import tries
from kit.tables import changes, plus
from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.reference import Bag, Row, execute, recompute
from spillway.maintain.strategies.registry import STRATEGIES, plan_round

COLUMNS = ("a", "b")
VALUES = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.tuples(VALUES, VALUES).map(lambda values: tuple(zip(COLUMNS, values, strict=True)))


@st.composite
def graphs(draw: st.DrawFn, largest: int = 6) -> ViewGraph:
    """A chain, a star, a random tree, or one of these with further edges."""
    n = draw(st.integers(2, largest))
    shape = draw(st.sampled_from(["chain", "star", "tree"]))
    if shape == "chain":
        ends = list(pairwise(range(n)))
    elif shape == "star":
        ends = [(0, node) for node in range(1, n)]
    else:
        ends = [(draw(st.integers(0, node - 1)), node) for node in range(1, n)]
    every = [(a, b) for a in range(n) for b in range(a + 1, n) if (a, b) not in ends]
    if every:
        ends += draw(st.lists(st.sampled_from(every), max_size=3, unique=True))
    columns = st.sampled_from(COLUMNS)
    pairs = st.lists(st.tuples(columns, columns), min_size=1, max_size=2, unique=True).map(tuple)
    names = draw(st.permutations(range(n)))
    edges = (Edge(names[a], names[b], draw(pairs)) for a, b in ends)
    return ViewGraph(tuple(f"r{node}" for node in range(n)), tuple(edges))


@pytest.mark.parametrize("strategy", STRATEGIES)
@tries(2)  # for each of the strategies
@given(data=st.data())
def test_the_plan_gives_the_recomputed_delta(strategy: str, data: st.DataObject) -> None:
    graph = data.draw(graphs())
    states: list[Bag] = [Counter(data.draw(st.lists(ROWS, max_size=4))) for _ in graph.nodes]
    deltas = [data.draw(changes(state, ROWS)) for state in states]
    after = [plus(state, delta) for state, delta in zip(states, deltas, strict=True)]
    concurrent: list[Bag] = [Counter() for _ in graph.nodes]

    def answer(node: int) -> tuple[Bag, Bag]:
        """The source at this moment: others may have written since the last query."""
        concurrent[node] = plus(
            concurrent[node], data.draw(changes(plus(after[node], concurrent[node]), ROWS, 1))
        )
        return plus(after[node], concurrent[node]), concurrent[node]

    plan = plan_round(strategy, graph, [len(delta) for delta in deltas])
    expected = recompute(graph, after)
    expected.subtract(recompute(graph, states))
    assert execute(plan, deltas, answer) == Counter({row: w for row, w in expected.items() if w})


def rows(*values: Sequence[object]) -> list[Row]:
    return [tuple(zip(COLUMNS, one, strict=True)) for one in values]


def test_the_reference_itself_against_a_case_by_hand() -> None:
    graph = ViewGraph(("r", "s"), (Edge(0, 1, (("a", "b"),)),))
    left, right = Counter(rows((1, 0), (1, 0), (None, 0))), Counter(rows((7, 1), (8, None)))
    joined = recompute(graph, [left, right])
    assert joined == Counter({(rows((1, 0))[0], rows((7, 1))[0]): 2})


@tries(4)
@given(graphs(largest=8), st.data())
def test_every_plan_covers_all_inputs_once(graph: ViewGraph, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 2), min_size=len(graph.names), max_size=len(graph.names)))
    for strategy in STRATEGIES:
        plan = plan_round(strategy, graph, sizes)
        assert all(plan.covers[slot] == tuple(graph.nodes) for slot in plan.results)
        for query in plan.queries:
            for part in query.parts:
                between = graph.edges_between(plan.covers[part.read], query.input)
                assert sorted((*part.edges, *part.local)) == sorted(between)
