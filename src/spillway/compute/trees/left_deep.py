"""The left-deep tree: joins one after the other, each result the next hash table (dissertation, 2.2.1).

Starts with the smallest relation, and goes on with the connected one that leaves the fewest rows.
"""

from __future__ import annotations

from spillway.compute.cost import TreeCost
from spillway.compute.join_graph import members_of
from spillway.compute.tree import Input, Segment


def left_deep(model: TreeCost) -> Segment:
    graph = model.graph
    first = min(range(graph.size), key=lambda index: (graph.relations[index].rows, index))
    built: Input = first
    mask = 1 << first
    while mask != graph.everything:
        joined = mask
        following = min(
            members_of(graph.neighbours(mask)),
            key=lambda index: (model.cardinality.rows(joined | 1 << index), index),
        )
        built = Segment(following, (built,))
        mask |= 1 << following
    assert isinstance(built, Segment)
    return built
