"""The zigzag tree: the right-deep tree cut wherever its hash tables fill the memory (dissertation, 2.2.2).

The result of each piece is kept and probes the next piece. With enough memory it is the right-deep tree.
"""

from __future__ import annotations

from spillway.compute.cost import TreeCost
from spillway.compute.tree import Input, Segment, mask_of_input
from spillway.compute.trees.right_deep import right_deep_tree


def zigzag(model: TreeCost) -> Segment:
    return cut(model, right_deep_tree(model))


def cut(model: TreeCost, segment: Segment) -> Segment:
    """A segment as a sequence of pieces that each fit into memory; a build that is too large stands alone."""
    limit = model.machine.memory_bytes
    probe: Input = segment.probe
    piece: list[Input] = []
    used = 0.0
    for build in segment.builds:
        size = model.table_bytes(mask_of_input(build))
        if piece and limit is not None and used + size > limit:
            probe, piece, used = Segment(probe, tuple(piece)), [], 0.0
        piece.append(build)
        used += size
    return Segment(probe, tuple(piece))
