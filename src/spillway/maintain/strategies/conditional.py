"""Conditional grouping: scroll up and scroll down along a path of all inputs, 2(n-1) queries (10.2.3).

A view graph without such a path is left to `graph_transform`, which this calls then.
"""

from __future__ import annotations

from collections.abc import Sequence

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan, PlanBuilder
from spillway.maintain.strategies.graph_transform import transform
from spillway.maintain.strategies.path_grouping import Block, group_path

NAME = "conditional"


def conditional_plan(
    graph: ViewGraph, sizes: Sequence[int], path: Sequence[int] | None = None
) -> MaintenancePlan:
    """The plan along `path`; None: the first path of all inputs."""
    builder = PlanBuilder(NAME, graph)
    path = path or graph.path()
    if len(path) < len(graph.names):
        return transform(builder, sizes, path)
    blocks = [Block((node,), node if sizes[node] else None) for node in path]
    return builder.plan(group_path(builder, blocks))
