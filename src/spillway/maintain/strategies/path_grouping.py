"""Scroll up, scroll down: the two phases of conditional grouping over a path of blocks (10.2.3, 10.3.2).

A block is a set of connected inputs with the slot of its own delta: one input, or a part of the view whose
delta was computed before. Scrolling up, all deltas that have come this far join the next block as it was
before the round; scrolling down, each joins the blocks before its own as they are after it. A block is no
stored relation: joining it asks each of its inputs. Every delta on the way covers the previous block, so one
edge from there serves all of them; other edges are evaluated by the view manager at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.maintain.plan import PlanBuilder


@dataclass(frozen=True, slots=True)
class Block:
    """Inputs that are maintained together; `delta` is the slot of their joint delta, None: unchanged."""

    inputs: tuple[int, ...]
    delta: int | None


def group_path(builder: PlanBuilder, path: Sequence[Block]) -> list[int]:
    """The slots whose sum is the delta of the join of all blocks of `path`."""
    climbing: dict[int, int] = {}
    for place in range(len(path) - 1):
        _start(climbing, place, path[place])
        _join_block(builder, climbing, path[place], path[place + 1], before=True)
    _start(climbing, len(path) - 1, path[-1])

    falling: dict[int, int] = {}
    for place in range(len(path) - 1, 0, -1):
        if place in climbing:
            falling[place] = climbing[place]
        _join_block(builder, falling, path[place], path[place - 1], before=False)
    if 0 in climbing:
        falling[0] = climbing[0]
    return [falling[place] for place in sorted(falling)]


def _start(slots: dict[int, int], place: int, block: Block) -> None:
    if block.delta is not None:
        slots[place] = block.delta


def _join_block(
    builder: PlanBuilder, slots: dict[int, int], last: Block, block: Block, *, before: bool
) -> None:
    graph = builder.graph
    covered = set(last.inputs)
    for node in graph.visit(covered, block.inputs):
        edges = graph.edges_between(covered, node)
        via = {graph.edges[edges[0]].other(node)} if edges else set()
        written = builder.query(node, [(slot, before) for slot in slots.values()], via=via)
        slots.update(zip(slots, written, strict=True))
        covered.add(node)
