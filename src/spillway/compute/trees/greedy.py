"""The greedy bushy tree: always the pair of connected parts whose join costs least next.

For graphs that are too large for the exact search. A pair's rank is the rows that it leaves: the work of
everything above it.
"""

from __future__ import annotations

from spillway.compute.cost import UNPARTITIONED, TreeCost
from spillway.compute.tree import Join, Node, Segment, to_segments


def greedy(model: TreeCost) -> Segment:
    graph = model.graph
    parts: dict[int, Node] = {1 << index: index for index in range(graph.size)}
    while len(parts) > 1:
        masks = sorted(parts)
        left, right = min(
            ((a, b) for n, a in enumerate(masks) for b in masks[n + 1 :] if graph.links(a, b)),
            key=lambda pair: (model.cardinality.rows(pair[0] | pair[1]), pair),
        )
        parts[left | right] = _oriented(model, (left, parts.pop(left)), (right, parts.pop(right)))
    (tree,) = parts.values()
    assert isinstance(tree, Join)
    return to_segments(tree)


def _oriented(model: TreeCost, left: tuple[int, Node], right: tuple[int, Node]) -> Join:
    """The side that costs less to build, with what it costs to keep it, is the hash table."""
    costs = []
    for (build, built), (probe, probing) in ((left, right), (right, left)):
        classes = model.graph.links(build, probe)
        cost = model.join(probe, build, classes, UNPARTITIONED)
        kept = model.keep(build) if build & (build - 1) else 0.0
        costs.append((cost.build + cost.probe + kept, Join(built, probing)))
    return min(costs, key=lambda found: found[0])[1]
