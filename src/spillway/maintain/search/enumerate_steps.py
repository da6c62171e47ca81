"""Algorithm 8: every instance of a maintenance step, exact and slow; the number of orders is factorial."""

from __future__ import annotations

from collections.abc import Iterator

from spillway.maintain.graph import ViewGraph
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.search.step import PartialStep


def instances(graph: ViewGraph, model: QueryCost, delta: int, rows: float) -> Iterator[PartialStep]:
    """All orders in which the delta of input `delta` can visit the others along edges, with their cost."""

    def continued(step: PartialStep) -> Iterator[PartialStep]:
        if len(step.visited) == len(graph.names):
            yield step
        for longer in step.extensions(graph, model):
            yield from continued(longer)

    return continued(PartialStep((delta,), rows, 0.0))


def best_instance(graph: ViewGraph, model: QueryCost, delta: int, rows: float) -> PartialStep:
    """The cheapest instance."""
    return min(instances(graph, model, delta, rows), key=lambda step: (step.seconds, step.visited))
