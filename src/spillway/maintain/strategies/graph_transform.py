"""Graph transformation: group along a path, make that path one node, and repeat until one node is left.

Cyclic views with a path of all inputs take 2(n-1) queries, the remaining edges being evaluated by the view
manager. A star or a tree is taken apart: the delta of the first path is the delta of a node that stands for
it in the smaller graph (10.3.2, 11.2.2), until a node stands for the whole view.
"""

from __future__ import annotations

from collections.abc import Sequence

from spillway.maintain.graph import ViewGraph, longest_path
from spillway.maintain.plan import MaintenancePlan, PlanBuilder
from spillway.maintain.strategies.path_grouping import Block, group_path

NAME = "graph-transform"


def graph_transform_plan(
    graph: ViewGraph, sizes: Sequence[int], path: Sequence[int] | None = None
) -> MaintenancePlan:
    """The plan that starts with `path`; None: the first of the longest paths."""
    return transform(PlanBuilder(NAME, graph), sizes, path or graph.path())


def transform(builder: PlanBuilder, sizes: Sequence[int], path: Sequence[int]) -> MaintenancePlan:
    """Find a path, group along it, replace it by one block; `path` is the first of them."""
    blocks = [Block((node,), node if sizes[node] else None) for node in builder.graph.nodes]
    chosen = [blocks[node] for node in path]
    while True:
        results = group_path(builder, chosen)
        rest = [block for block in blocks if block not in chosen]
        if not rest:
            return builder.plan(results)
        inputs = tuple(sorted(node for block in chosen for node in block.inputs))
        blocks = [Block(inputs, builder.union(results) if results else None), *rest]
        chosen = [blocks[place] for place in longest_path(_block_neighbours(builder.graph, blocks))]


def _block_neighbours(graph: ViewGraph, blocks: Sequence[Block]) -> dict[int, tuple[int, ...]]:
    return {
        number: tuple(
            other
            for other, there in enumerate(blocks)
            if other != number and any(graph.adjacent(block.inputs, node) for node in there.inputs)
        )
        for number, block in enumerate(blocks)
    }
