"""Insufficient memory: algorithm 2, SimpleIncSegTree (dissertation, 3.3).

The segmented right-deep tree's pieces each fit into memory; each is then composed into a segmented bushy
tree of its own, if that still fits. The pieces run one after the other.
"""

from __future__ import annotations

from spillway.compute.cost import TreeCost
from spillway.compute.tree import Input, Segment, mask_of_input
from spillway.compute.trees.chain import chain
from spillway.compute.trees.segmented_right_deep import minimized_work

GROUP_SIZE = 3
"""Relations per group, as in the experiment of figure 3.13."""


def incremental_tree(model: TreeCost, size: int = GROUP_SIZE) -> Segment:
    return _compose(model, minimized_work(model), size)


def _compose(model: TreeCost, piece: Segment, size: int) -> Segment:
    probe = piece.probe if isinstance(piece.probe, int) else _compose(model, piece.probe, size)
    builds = [build if isinstance(build, int) else _compose(model, build, size) for build in piece.builds]
    flat = chain(model, probe, builds)
    bushy = _grouped(model, probe, builds, size)
    return bushy if bushy is not None and model.fits(bushy) else flat


def _grouped(model: TreeCost, probe: Input, builds: list[Input], size: int) -> Segment | None:
    """Groups of builds that are connected among themselves, each a segment of its own."""
    if len(builds) <= size:
        return None
    graph, rows = model.graph, model.cardinality.rows
    waiting = sorted(builds, key=lambda build: rows(mask_of_input(build)), reverse=True)
    groups: list[Input] = []
    while waiting:
        first = waiting.pop(0)
        mask, members = mask_of_input(first), list[Input]()
        while len(members) + 1 < size:
            near = [build for build in waiting if graph.links(mask, mask_of_input(build))]
            if not near:
                break
            joined = mask
            nearest = min(near, key=lambda build: rows(joined | mask_of_input(build)))
            waiting.remove(nearest)
            members.append(nearest)
            mask |= mask_of_input(nearest)
        groups.append(chain(model, first, members) if members else first)
    return chain(model, probe, groups)
