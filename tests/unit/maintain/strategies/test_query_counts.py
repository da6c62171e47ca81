"""How many maintenance queries each strategy sends, for 2 to 10 changed inputs."""

from itertools import pairwise
from math import ceil

import pytest

from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.strategies.adjacent import adjacent_plan
from spillway.maintain.strategies.extended_batch import extended_batch_plan
from spillway.maintain.strategies.registry import plan_round

SIZES = range(2, 11)


def graph(n: int, pairs: list[tuple[int, int]]) -> ViewGraph:
    edges = tuple(Edge(a, b, ((f"k{number}", f"k{number}"),)) for number, (a, b) in enumerate(pairs))
    return ViewGraph(tuple(f"r{node}" for node in range(n)), edges)


def chain(n: int) -> ViewGraph:
    return graph(n, list(pairwise(range(n))))


def ring(n: int) -> ViewGraph:
    return graph(n, [*pairwise(range(n)), *([(0, n - 1)] if n > 2 else [])])


def star(n: int) -> ViewGraph:
    return graph(n, [(0, node) for node in range(1, n)])


def count(strategy: str, view: ViewGraph, changed: int | None = None) -> int:
    n = len(view.names)
    sizes = [1] * n if changed is None else [1] * changed + [0] * (n - changed)
    return len(plan_round(strategy, view, sizes).queries)


@pytest.mark.parametrize("n", SIZES)
def test_chains(n: int) -> None:
    assert count("batch", chain(n)) == n * (n - 1)
    assert count("extended-batch", chain(n)) == n * (n - 1)
    assert count("greedy", chain(n)) == n
    assert count("conditional", chain(n)) == 2 * (n - 1)
    assert count("graph-transform", chain(n)) == 2 * (n - 1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_adjacent_grouping_is_equation_10_1_and_groups_the_rest_too(n: int, size: int) -> None:
    size = min(size, n)
    whole, rest = divmod(n, size)
    queries = len(adjacent_plan(chain(n), [1] * n, size).queries)
    assert queries == whole * (size * (size - 1) + n - size) + (rest * (rest - 1) + n - rest if rest else 0)
    assert queries <= whole * (size * (size - 1) + n - size) + rest * (n - 1)


@pytest.mark.parametrize("n", SIZES)
def test_adjacent_grouping_grows_like_n_to_the_power_of_1_5(n: int) -> None:
    queries = count("adjacent", chain(n))
    assert queries <= count("batch", chain(n))
    assert n**1.5 * 0.6 <= queries <= ceil(2 * n**1.5)


@pytest.mark.parametrize("n", SIZES)
def test_cyclic_views_take_no_more_queries(n: int) -> None:
    assert count("conditional", ring(n)) == 2 * (n - 1)
    assert count("graph-transform", ring(n)) == 2 * (n - 1)
    assert count("extended-batch", ring(n)) == n * (n - 1)


@pytest.mark.parametrize("n", SIZES)
def test_sequential_maintenance_sends_every_update_to_all_others(n: int) -> None:
    assert len(plan_round("sequential", chain(n), [3] * n).queries) == 3 * n * (n - 1)


def test_stars_are_taken_apart() -> None:
    assert count("graph-transform", star(3)) == 4
    assert count("graph-transform", star(5)) == 12
    for n in range(4, 9):
        assert count("graph-transform", star(n)) < count("batch", star(n))


@pytest.mark.parametrize("changed", range(1, 7))
def test_only_changed_inputs_cost_queries(changed: int) -> None:
    assert count("batch", chain(6), changed) == 5 * changed
    # Figure 10.14: the first scrolls up through five sources; each further one down through one more.
    assert count("conditional", chain(6), changed) == 5 + changed - 1
    assert count("conditional", chain(6), 0) == 0


def test_extended_batching_combines_all_edges_to_visited_inputs() -> None:
    triangle = graph(3, [(0, 1), (1, 2), (0, 2)])
    last = extended_batch_plan(triangle, [1, 0, 0]).queries[-1]
    assert last.input == 2
    assert last.parts[0].edges == (1, 2)
    only = plan_round("batch", triangle, [1, 0, 0]).queries[-1].parts[0]
    assert (only.edges, only.local) == ((1,), (2,))


@pytest.mark.parametrize("n", [8, 12, 20])
def test_dense_graphs_end(n: int) -> None:
    clique = graph(n, [(a, b) for b in range(n) for a in range(b)])
    assert count("graph-transform", clique) == 2 * (n - 1)
    assert count("adjacent", clique) < count("batch", clique)
    assert len(next(clique.paths())) == n


@pytest.mark.parametrize("n", [13, 16])
def test_long_paths_are_found_beyond_exact_enumeration(n: int) -> None:
    assert len(chain(n).path()) == n
    assert count("conditional", ring(n)) == 2 * (n - 1)
