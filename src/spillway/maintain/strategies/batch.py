"""Batch maintenance: each source's delta visits every other source by itself, n(n-1) queries (equation 9.4).

A query uses one edge; on a cyclic view the others are evaluated by the view manager. `extended_batch` sends
them along.
"""

from __future__ import annotations

from collections.abc import Sequence

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan, PlanBuilder

NAME = "batch"


def batch_plan(graph: ViewGraph, sizes: Sequence[int]) -> MaintenancePlan:
    """One maintenance step per changed input."""
    builder = PlanBuilder(NAME, graph)
    return builder.plan([visit_all(builder, node, node) for node in graph.nodes if sizes[node]])


def visit_all(builder: PlanBuilder, slot: int, delta: int, order: Sequence[int] | None = None) -> int:
    """Join `slot`, which holds changes of input `delta`, with every input that it does not cover."""
    graph = builder.graph
    for node in order or graph.visit(builder.covers[slot], graph.nodes):
        edges = graph.edges_between(builder.covers[slot], node)
        via = {graph.edges[edges[0]].other(node)} if edges else set()
        (slot,) = builder.query(node, [(slot, node > delta)], via=via)
    return slot
