"""The segmented bushy tree: algorithm 1, ComposeBushyTree (dissertation, 3.2).

Repeatedly the largest relation that is in no group yet begins one, with the best connected set of at most m
relations around it. All groups run side by side; the final segment joins their results. The group with the
fewest probe steps probes there (3.4.2), not the largest one. Sets around a relation are enumerated layer by
layer; where a layer is too wide only its smallest results are followed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from spillway.compute.cost import TreeCost
from spillway.compute.join_graph import members_of
from spillway.compute.tree import Input, Segment
from spillway.compute.trees.chain import chain, chain_of, largest

WIDEST_LAYER = 64
"""How many sets of one size are followed: all for small groups, the smallest results for large ones."""
LARGE_SHARE = 1.5
"""A relation is large, and should probe, if it has this many times the average rows (3.2)."""

Best = Callable[[TreeCost, int], float]


def least_cost(model: TreeCost, mask: int) -> float:
    """The work of a group and of building its result: the rule by which groups are chosen."""
    if not mask & (mask - 1):
        return model.cardinality.rows(mask) * model.units.build
    return model.work(chain_of(model, mask)) + model.cardinality.rows(mask) * model.units.build


def segmented_bushy(model: TreeCost, best: Best = least_cost) -> Segment:
    """The tree with the number of groups that the heuristic gives."""
    return compose(model, group_size(model), best)


def segmented_bushy_by_cost(model: TreeCost, best: Best = least_cost) -> Segment:
    """The tree with the number of groups that costs least."""
    count = model.graph.size
    sizes = sorted({ceil(count / groups) for groups in range(2, max(2, count // 2) + 1)})
    return min((compose(model, size, best) for size in sizes), key=model.seconds)


def group_size(model: TreeCost) -> int:
    """m: there are as many groups as large relations, at least two and at most half the relations."""
    rows = [relation.rows for relation in model.graph.relations]
    large = sum(count > LARGE_SHARE * sum(rows) / len(rows) for count in rows)
    groups = min(max(large, 2), max(2, len(rows) // 2))
    return ceil(len(rows) / groups)


def compose(model: TreeCost, size: int, best: Best = least_cost, *, by_steps: bool = True) -> Segment:
    """Algorithm 1 with groups of at most `size` relations; `by_steps` false: the largest group probes."""
    graph = model.graph
    free = graph.everything
    groups: list[int] = []
    while size >= 2:
        open_relations = [relation for relation in members_of(free) if graph.neighbours(1 << relation) & free]
        if not open_relations:
            break
        probe = max(open_relations, key=lambda index: (graph.relations[index].rows, -index))
        group = min(_sets_around(model, probe, free, size), key=lambda mask: (best(model, mask), mask))
        groups.append(group)
        free &= ~group
    return _final(model, groups, [1 << relation for relation in members_of(free)], by_steps=by_steps)


def _sets_around(model: TreeCost, start: int, free: int, size: int) -> list[int]:
    """The connected sets with `start` that cannot grow: of `size` relations, or with no free neighbour."""
    graph = model.graph
    layer, finished = {1 << start}, []
    for _ in range(size - 1):
        wider: set[int] = set()
        for mask in layer:
            grown = [mask | 1 << relation for relation in members_of(graph.neighbours(mask) & free)]
            if not grown and mask & (mask - 1):
                finished.append(mask)
            wider.update(grown)
        layer = set(sorted(wider, key=lambda mask: (model.cardinality.rows(mask), mask))[:WIDEST_LAYER])
    return finished + list(layer)


def _final(model: TreeCost, groups: list[int], single: list[int], *, by_steps: bool) -> Segment:
    """The final segment: one group probes, and meets the results of the others."""
    if not groups:
        return chain_of(model, model.graph.everything)
    rows = model.cardinality.rows
    if by_steps:
        probing = min(groups, key=lambda mask: (mask.bit_count(), -rows(mask), mask))
    else:
        probing = max(groups, key=lambda mask: (rows(mask), mask))
    others: list[Input] = [chain_of(model, mask) for mask in groups if mask != probing]
    others += [largest(model, mask) for mask in single]
    first = chain_of(model, probing)
    return Segment(first.probe, first.builds + chain(model, first, others).builds)
