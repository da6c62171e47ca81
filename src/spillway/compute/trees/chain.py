"""The order in which a segment meets its builds: next is the connected one that leaves the fewest rows.

If several leave as few, one on the key by which the rows are partitioned already goes first. So builds on the
same key stand together, and rows are not redirected between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from spillway.compute.cost import UNPARTITIONED, TreeCost
from spillway.compute.join_graph import mask_of, members_of
from spillway.compute.tree import Input, Segment, mask_of_input


def chain(model: TreeCost, probe: Input, builds: Sequence[Input]) -> Segment:
    """The segment in which `probe` meets all of `builds`, which must be connected with it."""
    waiting = list(builds)
    before, partitioned_by = mask_of_input(probe), UNPARTITIONED
    ordered: list[Input] = []
    while waiting:
        build, partitioned_by = _next(model, before, waiting, partitioned_by)
        waiting.remove(build)
        ordered.append(build)
        before |= mask_of_input(build)
    return Segment(probe, tuple(ordered))


def largest(model: TreeCost, mask: int) -> int:
    """The relation with the most rows: probing with it leaves the least to build."""
    return max(members_of(mask), key=lambda index: (model.graph.relations[index].rows, -index))


def chain_of(model: TreeCost, mask: int) -> Segment:
    """A connected set as one segment, probed by its largest relation."""
    probe = largest(model, mask)
    return chain(model, probe, list(members_of(mask & ~mask_of([probe]))))


def _next(model: TreeCost, before: int, waiting: Sequence[Input], by: int) -> tuple[Input, int]:
    best: tuple[tuple[float, bool], Input, int] | None = None
    for build in waiting:
        added = mask_of_input(build)
        classes = model.graph.links(before, added)
        if not classes:
            continue
        rank = (model.cardinality.rows(before | added), by not in classes)
        if best is None or rank < best[0]:
            best = rank, build, model.join(before, added, classes, by).partitioned_by
    assert best is not None, "the builds are connected with the probe"
    return best[1], best[2]
