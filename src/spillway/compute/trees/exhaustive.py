"""Exact search: dynamic programming over connected sets, for the tree of least total work.

Every pair of connected sets that are joined by a key is tried once (DPccp enumerates exactly those), with
either side as the hash table, and for each set the best tree is kept per key that its rows are partitioned
by. If the graph has more pairs than `most_pairs`, the search gives up and returns None. No tree of any other
algorithm has less work by the same model.
"""

from __future__ import annotations

from collections.abc import Iterator

from spillway.compute.cost import UNPARTITIONED, TreeCost
from spillway.compute.join_graph import JoinGraph, members_of
from spillway.compute.tree import Join, Node, Segment, to_segments

MOST_PAIRS = 12_000
"""About a second of search."""

_Best = dict[int, dict[int, tuple[float, Node]]]


def exhaustive(model: TreeCost, most_pairs: int = MOST_PAIRS) -> Segment | None:
    graph = model.graph
    pairs: list[tuple[int, int]] = []
    for pair in connected_pairs(graph):
        pairs.append(pair)
        if len(pairs) > most_pairs:
            return None
    best: _Best = {1 << index: {UNPARTITIONED: (model.scan(index), index)} for index in range(graph.size)}
    for left, right in sorted(pairs, key=lambda pair: (pair[0] | pair[1]).bit_count()):
        classes = graph.links(left, right)
        _try(model, best, left, right, classes)
        _try(model, best, right, left, classes)
    _, tree = min(best[graph.everything].values(), key=lambda found: found[0])
    assert isinstance(tree, Join)
    return to_segments(tree)


def _try(model: TreeCost, best: _Best, build: int, probe: int, classes: tuple[int, ...]) -> None:
    build_work, built = min(best[build].values(), key=lambda found: found[0])
    if build & (build - 1):
        build_work += model.keep(build)
    kept = best.setdefault(build | probe, {})
    for partitioned_by, (probe_work, probing) in best[probe].items():
        cost = model.join(probe, build, classes, partitioned_by)
        work = build_work + probe_work + cost.build + cost.probe
        found = kept.get(cost.partitioned_by)
        if found is None or work < found[0]:
            kept[cost.partitioned_by] = work, Join(built, probing)


def connected_pairs(graph: JoinGraph) -> Iterator[tuple[int, int]]:
    """Every unordered pair of disjoint connected sets that a key joins, once."""
    for start in range(graph.size - 1, -1, -1):
        smaller = (1 << (start + 1)) - 1
        for left in _grow(graph, 1 << start, smaller):
            floor = (1 << ((left & -left).bit_length())) - 1
            blocked = left | floor
            for other in reversed(list(members_of(graph.neighbours(left) & ~blocked))):
                below = graph.neighbours(left) & ((1 << (other + 1)) - 1)
                yield from ((left, right) for right in _grow(graph, 1 << other, blocked | below))


def _grow(graph: JoinGraph, mask: int, blocked: int) -> Iterator[int]:
    """`mask` and every connected set that contains it and nothing else that is blocked."""
    yield mask
    around = graph.neighbours(mask) & ~blocked
    subset = around
    while subset:
        yield from _grow(graph, mask | subset, blocked | around)
        subset = (subset - 1) & around
