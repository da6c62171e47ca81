"""The strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spillway.errors import JobError
from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan
from spillway.maintain.strategies import (
    adjacent,
    batch,
    conditional,
    extended_batch,
    graph_transform,
    greedy,
    sequential,
)

Strategy = Callable[[ViewGraph, Sequence[int]], MaintenancePlan]

STRATEGIES: Mapping[str, Strategy] = {
    sequential.NAME: sequential.sequential_plan,
    batch.NAME: batch.batch_plan,
    adjacent.NAME: adjacent.adjacent_plan,
    greedy.NAME: greedy.greedy_plan,
    conditional.NAME: conditional.conditional_plan,
    extended_batch.NAME: extended_batch.extended_batch_plan,
    graph_transform.NAME: graph_transform.graph_transform_plan,
}


def plan_round(strategy: str, graph: ViewGraph, sizes: Sequence[int]) -> MaintenancePlan:
    """The plan of the named strategy for deltas of these sizes (rows per input)."""
    if strategy not in STRATEGIES:
        raise JobError(f'strategy = "{strategy}": must be one of {", ".join(STRATEGIES)}')
    return STRATEGIES[strategy](graph, sizes)
