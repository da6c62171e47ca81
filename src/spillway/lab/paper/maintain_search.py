"""Table 11.3: time and quality of the search for a batch plan, by the number of plans that it keeps."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from statistics import fmean

from spillway.maintain import CostFunction, Edge, QueryCost, ViewGraph
from spillway.maintain.search import PartialStep, best_instance, controlled_instance

_EDGES = (
    (0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (0, 4), (2, 6), (4, 8), (1, 5),
)  # fmt: skip
_ROWS = 500


def random_model(graph: ViewGraph, seed: int) -> QueryCost:
    """Sources of different speed, edges of different join ratio."""
    chance = random.Random(seed)  # noqa: S311 - data of an experiment
    directions = [(number, end) for number, edge in enumerate(graph.edges) for end in (edge.left, edge.right)]
    return QueryCost(
        cardinalities=(1_000_000,) * len(graph.names),
        attributes=(4,) * len(graph.names),
        costs={
            direction: CostFunction(
                (chance.uniform(0.001, 0.02), 0.0, chance.uniform(1e-6, 1e-4), 0, 0, 0, 0)
            )
            for direction in directions
        },
        fanouts={direction: chance.uniform(0.3, 3.0) for direction in directions},
    )


def _controlled(graph: ViewGraph, kept: int, model: QueryCost, delta: int) -> PartialStep:
    return controlled_instance(graph, model, delta, _ROWS, kept)


def search_table(*, quick: bool) -> dict[str, dict[str, float]]:
    """Milliseconds and plan cost, and both relative to enumeration; averages over random costs."""
    graph = ViewGraph(
        tuple(f"r{node}" for node in range(9)), tuple(Edge(a, b, (("k", "k"),)) for a, b in _EDGES)
    )
    searches: dict[str, Callable[[QueryCost, int], PartialStep]] = {
        str(kept): partial(_controlled, graph, kept) for kept in (1, 5, 20)
    }
    searches["all"] = lambda model, delta: best_instance(graph, model, delta, _ROWS)
    times: dict[str, list[float]] = {label: [] for label in searches}
    costs: dict[str, list[float]] = {label: [] for label in searches}
    for seed in range(1 if quick else 5):
        model = random_model(graph, seed)
        for label, search in searches.items():
            began = time.perf_counter()
            costs[label].append(sum(search(model, delta).seconds for delta in graph.nodes))
            times[label].append(time.perf_counter() - began)
    return {
        "time over enumeration": {x: fmean(values) / fmean(times["all"]) for x, values in times.items()},
        "cost over enumeration": {x: fmean(values) / fmean(costs["all"]) for x, values in costs.items()},
        "search time (s)": {x: fmean(values) for x, values in times.items()},
        "plan cost (s)": {x: fmean(values) for x, values in costs.items()},
    }
