"""Greedy grouping: every source is asked once, by all deltas together: n queries (10.2.2).

A delta that has no edge to the source yet takes its Cartesian product with it: the fewest queries there can
be, for small data only.
"""

from __future__ import annotations

from collections.abc import Sequence

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan, PlanBuilder

NAME = "greedy"


def greedy_plan(graph: ViewGraph, sizes: Sequence[int]) -> MaintenancePlan:
    """One query per input, in FROM order."""
    builder = PlanBuilder(NAME, graph)
    slots = {node: node for node in graph.nodes if sizes[node]}
    for node in graph.nodes:
        sent = [delta for delta in slots if delta != node]
        written = builder.query(node, [(slots[delta], delta < node) for delta in sent])
        slots.update(zip(sent, written, strict=True))
    return builder.plan(slots.values())
