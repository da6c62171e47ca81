"""Algorithm 9: the controlled dynamic programme; of each length only the k cheapest partial steps go on.

Two partial steps that visited the same inputs have deltas of the same size, so only the cheaper one is kept.
k = 1 is greedy, no limit is exact.
"""

from __future__ import annotations

from spillway.maintain.graph import ViewGraph
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.search.step import PartialStep

KEPT = 20
"""Partial steps that go on; within 2 % of exact on nine inputs and twelve edges (table 11.3)."""


def controlled_instance(
    graph: ViewGraph, model: QueryCost, delta: int, rows: float, kept: int | None = KEPT
) -> PartialStep:
    """A cheap instance of the step of input `delta`; `kept` None: the cheapest."""
    steps = [PartialStep((delta,), rows, 0.0)]
    for _ in range(len(graph.names) - 1):
        cheapest: dict[frozenset[int], PartialStep] = {}
        for step in steps:
            for longer in step.extensions(graph, model):
                known = cheapest.get(frozenset(longer.visited))
                if known is None or longer.seconds < known.seconds:
                    cheapest[frozenset(longer.visited)] = longer
        steps = sorted(cheapest.values(), key=lambda step: (step.seconds, step.visited))[:kept]
    return steps[0]
