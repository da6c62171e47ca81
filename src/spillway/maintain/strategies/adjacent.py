"""Adjacent grouping: the steps of m neighbouring inputs are computed over their group and go on as one delta.

Inside a group it is batch maintenance, m(m-1) queries; their results have one schema, so the remaining n-m
sources are asked once per group. With m near the square root of n that is about n^1.5 queries (equation
10.1). Groups are connected in the view graph; a star has few such groups, and the rest are groups of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan, PlanBuilder

NAME = "adjacent"


def adjacent_plan(graph: ViewGraph, sizes: Sequence[int], group_size: int | None = None) -> MaintenancePlan:
    """The plan with groups of `group_size` inputs; None: near the square root of their number."""
    builder = PlanBuilder(NAME, graph)
    groups = connected_groups(graph, group_size or max(1, round(sqrt(len(graph.names)))))
    rank = {node: place for place, node in enumerate(node for group in groups for node in group)}
    results = []
    for group in groups:
        slots = []
        for delta in group:
            if not sizes[delta]:
                continue
            slot = delta
            for node in graph.visit({delta}, group):
                slot = _join(builder, slot, node, rank[node] > rank[delta])
            slots.append(slot)
        if not slots:
            continue
        slot = builder.union(slots)
        for node in graph.visit(group, graph.nodes):
            slot = _join(builder, slot, node, rank[node] > rank[group[0]])
        results.append(slot)
    return builder.plan(results)


def connected_groups(graph: ViewGraph, size: int) -> list[tuple[int, ...]]:
    """The nodes in groups of at most `size`, each connected; along a path where there is one."""
    path = graph.path()
    left = [*path, *(node for node in graph.nodes if node not in path)]
    groups = []
    while left:
        group = [left.pop(0)]
        while len(group) < size:
            node = next((candidate for candidate in left if graph.adjacent(group, candidate)), None)
            if node is None:
                break
            group.append(node)
            left.remove(node)
        groups.append(tuple(group))
    return groups


def _join(builder: PlanBuilder, slot: int, node: int, before: bool) -> int:
    (written,) = builder.query(node, [(slot, before)])
    return written
