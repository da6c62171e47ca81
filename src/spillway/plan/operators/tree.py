"""The plan of a view as a tree of m-way equi-joins: its leaves are the view's inputs.

A join's key is made of classes of equal terms that all its children have. Classes are numbered over the whole
view, columns by the leaf that they come from, so a plan does not say what travels between joins; the layout
does (`tree_layout`). Everything here is a plain value.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, TypeAlias

from spillway.model import Window
from spillway.plan.expression import ColumnRef, Expression
from spillway.plan.operators.join import (
    FORMAT,
    InputPlan,
    OutputColumn,
    canonical_input,
    canonical_outputs,
    column_label,
    digest,
)
from spillway.plan.operators.tree_choice import Shape, TreeChoice


@dataclass(frozen=True, slots=True)
class Leaf:
    """A child that is an input of the view."""

    number: int


@dataclass(frozen=True, slots=True)
class Below:
    """A child that is another join."""

    number: int


Child: TypeAlias = Leaf | Below


@dataclass(frozen=True, slots=True)
class JoinNode:
    """One m-way join. `residual` is over columns of leaves and tested as soon as all of them are joined."""

    children: tuple[Child, ...]
    classes: tuple[int, ...]
    """The classes that make up its key."""
    residual: Expression | None = None


@dataclass(frozen=True, slots=True)
class TreePlan:
    kind: ClassVar[str] = "tree"
    inputs: tuple[InputPlan, ...]
    """The leaves; the keys of each are its terms of the classes that it has, see `key_classes`."""
    key_classes: tuple[tuple[int, ...], ...]
    """Per leaf, the classes of its keys, ascending."""
    joins: tuple[JoinNode, ...]
    """Children come before their parents; the last is the root."""
    outputs: tuple[OutputColumn, ...]
    fingerprint: str
    key_labels: tuple[tuple[str, ...], ...] = ()
    """Per class, the labels of its terms (`a.k`), for messages."""
    key_types: tuple[str | None, ...] = ()
    """Per class, the type in which it is compared, if the catalog knows it."""
    windows: tuple[Window, ...] = ()
    """One per leaf; none at all in a view without windows."""
    partition: tuple[int, ...] = ()
    """The classes that partition all joins; none: each join uses its own key."""
    view: str = field(default="", compare=False)
    choice: TreeChoice | None = field(default=None, compare=False)
    """Why it has this tree."""

    @property
    def chosen_tree(self) -> Shape | None:
        """The tree, if statistics chose it: a restart needs the same one."""
        return None if self.choice is None or self.choice.chosen is None else self.choice.chosen.shape

    def leaves(self, child: Child) -> tuple[int, ...]:
        """The inputs below a child, in the order of the view."""
        if isinstance(child, Leaf):
            return (child.number,)
        below = (self.leaves(part) for part in self.joins[child.number].children)
        return tuple(sorted(leaf for leaves in below for leaf in leaves))

    def parent(self, join: int) -> int | None:
        """The join that takes in the results of another; None for the root."""
        for number, parent in enumerate(self.joins):
            if Below(join) in parent.children:
                return number
        return None

    def level(self, join: int) -> int:
        """The length of the longest chain of joins below it."""
        below = [self.level(child.number) for child in self.joins[join].children if isinstance(child, Below)]
        return 1 + max(below) if below else 0

    def descendants(self, join: int) -> tuple[int, ...]:
        """All joins below a join, in order."""
        found: list[int] = []
        for child in self.joins[join].children:
            if isinstance(child, Below):
                found += [*self.descendants(child.number), child.number]
        return tuple(sorted(found))

    def representative(self, child: Child, key_class: int) -> int:
        """The leaf below a child whose term represents a class: inside a child all terms of a class are
        equal."""
        return next(leaf for leaf in self.leaves(child) if key_class in self.key_classes[leaf])

    def shape(self, join: int | None = None) -> Shape:
        """The tree by the names of its inputs."""
        number = len(self.joins) - 1 if join is None else join
        return tuple(
            self.inputs[child.number].name if isinstance(child, Leaf) else self.shape(child.number)
            for child in self.joins[number].children
        )

    def column_label(self, ref: ColumnRef) -> str:
        return column_label(self.inputs, ref)


def shape_text(shape: Shape) -> str:
    return shape if isinstance(shape, str) else f"({' '.join(shape_text(part) for part in shape)})"


def tree_fingerprint(
    inputs: tuple[InputPlan, ...],
    key_classes: tuple[tuple[int, ...], ...],
    joins: tuple[JoinNode, ...],
    outputs: tuple[OutputColumn, ...],
    windows: tuple[Window, ...],
    partition: tuple[int, ...],
) -> str:
    """SHA-256 of the canonical form of a plan; the tree is part of it, because it decides the layout of
    state."""
    canonical: dict[str, Any] = {
        "format": FORMAT,
        "tree": [
            [
                [[type(child).__name__, child.number] for child in join.children],
                join.classes,
                None if join.residual is None else asdict(join.residual),
            ]
            for join in joins
        ],
        "inputs": [
            canonical_input(input_, classes) for input_, classes in zip(inputs, key_classes, strict=True)
        ],
        "outputs": canonical_outputs(outputs),
        "windows": [[window.column, window.range_us] for window in windows],
    }
    if partition:
        canonical["partition"] = partition
    return digest(canonical)
