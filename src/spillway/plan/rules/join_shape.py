"""Which joins a tree is made of: maximal m-way joins per shared key, or those of a shape.

A shape comes from the user, from the checkpoint, or from statistics (`tree_choice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.errors import ViewError
from spillway.plan.operators import Below, Child, JoinNode, Leaf, Shape


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of the tree that is already joined, and the classes that it has terms of."""

    child: Child
    classes: frozenset[int]
    first: int
    """Its first leaf, by which nodes are ordered."""
    text: str
    height: int
    """The length of the longest chain of joins in it."""


def planned_joins(names: Sequence[str], leaf_classes: Sequence[frozenset[int]]) -> tuple[JoinNode, ...]:
    """Joins that each take as many inputs as one key connects, until all inputs are joined.

    The inputs must be connected. Among keys that connect equally many inputs, the one with the lowest join
    wins: a tree with few levels has fewer exchanges, and narrower rows between them. The next tie goes to the
    key that the view names first.
    """
    nodes = [_leaf(names, leaf_classes, number) for number in range(len(names))]
    joins: list[JoinNode] = []
    while len(nodes) > 1:
        having: dict[int, list[_Node]] = {}
        for node in nodes:
            for key_class in node.classes:
                having.setdefault(key_class, []).append(node)
        best = min(having, key=lambda key: (-len(having[key]), max(n.height for n in having[key]), key))
        chosen = [node for node in nodes if best in node.classes]
        nodes = [node for node in nodes if best not in node.classes]
        nodes.append(_joined(chosen, joins))
    return tuple(joins)


def given_joins(
    shape: Shape, names: Sequence[str], leaf_classes: Sequence[frozenset[int]]
) -> tuple[JoinNode, ...]:
    """The joins of a tree of this shape; an invalid one is refused."""
    known = {name.lower(): number for number, name in enumerate(names)}
    seen: set[int] = set()
    joins: list[JoinNode] = []

    def node(part: Shape) -> _Node:
        if isinstance(part, str):
            number = known.get(part.lower())
            if number is None:
                raise ViewError(f"tree: unknown input {part}; the view has {', '.join(names)}")
            if number in seen:
                raise ViewError(f"tree: {part} appears twice; each input appears once")
            seen.add(number)
            return _leaf(names, leaf_classes, number)
        if len(part) < 2:
            raise ViewError(f"tree: a join has {len(part)} parts; each needs at least two")
        return _joined([node(child) for child in part], joins)

    if isinstance(shape, str):
        raise ViewError(f"tree: {shape} is one input; give lists of names, such as [['a', 'b'], 'c']")
    node(shape)
    left = [name for number, name in enumerate(names) if number not in seen]
    if left:
        raise ViewError(f"tree: {', '.join(left)} is missing; the tree needs every input of the view")
    return tuple(joins)


def _leaf(names: Sequence[str], leaf_classes: Sequence[frozenset[int]], number: int) -> _Node:
    return _Node(Leaf(number), leaf_classes[number], number, names[number], 0)


def _joined(nodes: Sequence[_Node], joins: list[JoinNode]) -> _Node:
    ordered = sorted(nodes, key=lambda node: node.first)
    shared = frozenset.intersection(*(node.classes for node in ordered))
    text = f"({' '.join(node.text for node in ordered)})"
    if not shared:
        raise ViewError(
            f"tree: no key is shared by all parts of {text}; join parts that an equality connects"
        )
    joins.append(JoinNode(tuple(node.child for node in ordered), tuple(sorted(shared))))
    classes = frozenset.union(*(node.classes for node in ordered))
    height = 1 + max(node.height for node in ordered)
    return _Node(Below(len(joins) - 1), classes, ordered[0].first, text, height)
