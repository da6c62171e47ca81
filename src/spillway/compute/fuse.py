"""Which segments of a tree share one Spark statement, and which results are kept in between.

A segment that another one builds need not be a statement of its own: its rows go straight into the hash table
of the other, and Spark runs it as a job beside its neighbours. That saves a pass over the result and the
fixed cost of a statement, but all hash tables of both are in memory together. If they exceed the limit, the
result is written and read back (dissertation, 3.3). Invariant: the tables of one statement fit into memory
together, unless those of one segment alone do not.
"""

from __future__ import annotations

from spillway.compute.cost import TreeCost
from spillway.compute.tree import Segment


def kept_segments(model: TreeCost, tree: Segment) -> frozenset[Segment]:
    """The segments whose results are written and read back; all others run inside the one that needs them."""
    kept: set[Segment] = set()
    _needed_bytes(model, tree, kept)
    return frozenset(kept)


def resident_bytes(model: TreeCost, tree: Segment) -> float:
    """The most that hash tables take at a time, over all statements of a tree."""
    kept = kept_segments(model, tree)
    roots = [segment for segment in tree.segments() if segment in kept or segment is tree]
    return max(model.resident_bytes(statement(root, kept)) for root in roots)


def statement(root: Segment, kept: frozenset[Segment]) -> list[Segment]:
    """The segments of the statement that ends with `root`, each after those that it needs."""
    before = [segment for child in root.children if child not in kept for segment in statement(child, kept)]
    return [*before, root]


def _needed_bytes(model: TreeCost, segment: Segment, kept: set[Segment]) -> float:
    """Hash tables of the statement that ends with this segment; the smallest children come first."""
    limit = model.machine.memory_bytes
    needed = model.memory_bytes(segment)
    children = [(_needed_bytes(model, child, kept), number) for number, child in enumerate(segment.children)]
    for size, number in sorted(children):
        if limit is None or needed + size <= limit:
            needed += size
        else:
            kept.add(segment.children[number])
    return needed
