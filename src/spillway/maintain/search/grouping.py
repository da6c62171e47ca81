"""The path of a grouping plan: every longest path in both directions, the cheapest by estimate (11.3.2).

Hamiltonian paths are enumerated up to twelve inputs; beyond that the view graph offers a bounded number,
those through inputs of few neighbours first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan
from spillway.maintain.query_cost import PlanEstimate, QueryCost
from spillway.maintain.strategies import conditional_plan

MOST_PATHS = 500
"""Estimating a path takes about a millisecond; a dense graph has thousands of them."""


def grouping_paths(graph: ViewGraph) -> list[tuple[int, ...]]:
    """The paths to consider, each in both directions."""
    return [way for path in islice(graph.paths(), MOST_PATHS) for way in (path, path[::-1])]


def best_grouping(
    graph: ViewGraph, model: QueryCost, sizes: Sequence[int]
) -> tuple[MaintenancePlan, PlanEstimate]:
    """The grouping plan with the lowest estimate."""
    plans = [conditional_plan(graph, sizes, path) for path in grouping_paths(graph)]
    estimated = [(plan, model.estimate(plan, sizes)) for plan in plans]
    return min(estimated, key=lambda pair: pair[1].seconds)
