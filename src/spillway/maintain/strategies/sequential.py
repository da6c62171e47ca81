"""Sequential maintenance (SWEEP): every single update visits all other sources, k(n-1) queries for k updates.

Updates of one input are taken after each other and inputs in order, so an update meets the same states as
the whole delta of its input does in batch maintenance.
"""

from __future__ import annotations

from collections.abc import Sequence

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan, PlanBuilder
from spillway.maintain.strategies.batch import visit_all

NAME = "sequential"


def sequential_plan(graph: ViewGraph, sizes: Sequence[int]) -> MaintenancePlan:
    """One maintenance step per update."""
    builder = PlanBuilder(NAME, graph)
    results = [
        visit_all(builder, builder.take(node, row), node)
        for node in graph.nodes
        for row in range(sizes[node])
    ]
    return builder.plan(results)
