"""The strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spillway.errors import JobError
from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import MaintenancePlan
from spillway.maintain.strategies import adjacent as adjacent_module
from spillway.maintain.strategies import batch as batch_module
from spillway.maintain.strategies import conditional as conditional_module
from spillway.maintain.strategies import extended_batch as extended_batch_module
from spillway.maintain.strategies import graph_transform as graph_transform_module
from spillway.maintain.strategies import greedy as greedy_module
from spillway.maintain.strategies import sequential as sequential_module

Strategy = Callable[[ViewGraph, Sequence[int]], MaintenancePlan]

STRATEGIES: Mapping[str, Strategy] = {
    sequential_module.NAME: sequential_module.sequential,
    batch_module.NAME: batch_module.batch,
    adjacent_module.NAME: adjacent_module.adjacent,
    greedy_module.NAME: greedy_module.greedy,
    conditional_module.NAME: conditional_module.conditional,
    extended_batch_module.NAME: extended_batch_module.extended_batch,
    graph_transform_module.NAME: graph_transform_module.graph_transform,
}


def plan_round(strategy: str, graph: ViewGraph, sizes: Sequence[int]) -> MaintenancePlan:
    """The plan of the named strategy for deltas of these sizes (rows per input)."""
    if strategy not in STRATEGIES:
        raise JobError(f'strategy = "{strategy}": must be one of {", ".join(STRATEGIES)}')
    return STRATEGIES[strategy](graph, sizes)
