"""Segmented right-deep trees: pieces that fit into memory, found directly in the graph (dissertation, 2.2.2).

The largest node probes; builds join it while memory lasts. The result is a node of a smaller graph, in which
it may probe or be built, until one node is left. The two variants choose the next build differently:
*minimized work* takes the one that leaves the fewest rows, *balanced consideration* weighs those rows with
the memory that the build takes, so that a segment holds more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spillway.compute.cost import TreeCost
from spillway.compute.tree import Input, Segment, mask_of_input

Rank = Callable[[TreeCost, int, int], float]


def minimized_work(model: TreeCost) -> Segment:
    return _segments(model, lambda made, before, build: made.cardinality.rows(before | build))


def balanced_consideration(model: TreeCost) -> Segment:
    return _segments(
        model, lambda made, before, build: made.cardinality.rows(before | build) * made.table_bytes(build)
    )


def _segments(model: TreeCost, rank: Rank) -> Segment:
    nodes: list[Input] = list(range(model.graph.size))
    while len(nodes) > 1:
        probe = max(nodes, key=lambda node: model.cardinality.rows(mask_of_input(node)))
        builds = _fill(model, probe, [node for node in nodes if node != probe], rank)
        nodes = [node for node in nodes if node != probe and node not in builds]
        nodes.append(Segment(probe, tuple(builds)))
    (tree,) = nodes
    assert isinstance(tree, Segment)
    return tree


def _fill(model: TreeCost, probe: Input, others: Sequence[Input], rank: Rank) -> list[Input]:
    """As many builds as memory holds, at least one."""
    limit = model.machine.memory_bytes
    waiting = list(others)
    before, used = mask_of_input(probe), 0.0
    builds: list[Input] = []
    while waiting:
        candidates = [
            (rank(model, before, mask_of_input(node)), number)
            for number, node in enumerate(waiting)
            if model.graph.links(before, mask_of_input(node))
            and (limit is None or not builds or used + model.table_bytes(mask_of_input(node)) <= limit)
        ]
        if not candidates:
            break
        chosen = waiting.pop(min(candidates)[1])
        builds.append(chosen)
        before |= mask_of_input(chosen)
        used += model.table_bytes(mask_of_input(chosen))
    return builds
