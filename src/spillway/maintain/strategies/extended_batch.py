"""Extended batching for cyclic views: a query carries every edge to what was visited before (equation 11.3).

The order in which a step visits the sources (its instance) is free; a search may give one per input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan, PlanBuilder

NAME = "extended-batch"


def extended_batch_plan(
    graph: ViewGraph, sizes: Sequence[int], orders: Mapping[int, Sequence[int]] | None = None
) -> MaintenancePlan:
    """One maintenance step per changed input; `orders[k]` lists the inputs that step k visits, in order."""
    builder = PlanBuilder(NAME, graph)
    results = []
    for delta in graph.nodes:
        if not sizes[delta]:
            continue
        slot = delta
        for node in (orders or {}).get(delta) or graph.visit({delta}, graph.nodes):
            (slot,) = builder.query(node, [(slot, node > delta)])
        results.append(slot)
    return builder.plan(results)
