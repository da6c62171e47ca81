"""The join graph: relations are nodes, key classes connect them.

A key class is a set of columns that the view makes equal, at most one of each relation; equality is
transitive, so any two members can be joined. A join of two sets of relations answers one equality of each
class that has members in both; over a whole tree that is one less than the class has members, whatever the
tree. Sets of relations are bit masks. Invariant: a `JoinGraph` is connected; a view that is not would need
a Cartesian product and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spillway.errors import ViewError


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation after the filters on it alone."""

    name: str
    rows: float
    row_bytes: float = 40.0
    tasks: int = 0
    """In how many pieces Spark reads it side by side; 0: unknown, taken to be enough."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """Relations that are joined on one key, and for pairs of them the share of the product that matches."""

    members: tuple[int, ...]
    selectivity: Mapping[tuple[int, int], float]
    """By pairs (smaller index first); all pairs of members."""
    label: str = ""

    @property
    def mask(self) -> int:
        return mask_of(self.members)


@dataclass(frozen=True, slots=True)
class JoinGraph:
    relations: tuple[Relation, ...]
    classes: tuple[JoinKey, ...]
    residual: tuple[int, ...] = ()
    """For each predicate that is not an equality of two columns, the relations that it reads."""
    residual_selectivity: float = 1 / 3
    """The share of rows that a residual predicate is assumed to let pass."""
    _adjacent: tuple[int, ...] = field(init=False, repr=False, compare=False)
    masks: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The members of each class, as a set."""

    def __post_init__(self) -> None:
        adjacent = [0] * len(self.relations)
        for key in self.classes:
            for member in key.members:
                adjacent[member] |= key.mask & ~(1 << member)
        object.__setattr__(self, "_adjacent", tuple(adjacent))
        object.__setattr__(self, "masks", tuple(key.mask for key in self.classes))
        apart = self.everything & ~self.reachable(1)
        if apart:
            near = ", ".join(self.relations[i].name for i in members_of(self.reachable(1)))
            far = ", ".join(self.relations[i].name for i in members_of(apart))
            raise ViewError(
                f"the view needs an equi-join between {near} and {far}; add a condition such as "
                "left.key = right.key"
            )

    @property
    def size(self) -> int:
        return len(self.relations)

    @property
    def everything(self) -> int:
        return (1 << len(self.relations)) - 1

    def neighbours(self, mask: int) -> int:
        """The relations outside `mask` that share a key with a relation inside."""
        found = 0
        for index in members_of(mask):
            found |= self._adjacent[index]
        return found & ~mask

    def reachable(self, start: int, within: int | None = None) -> int:
        """All that is connected with `start`, by way of relations in `within` only."""
        allowed = self.everything if within is None else within
        reached = start
        while more := self.neighbours(reached) & allowed:
            reached |= more
        return reached

    def is_connected(self, mask: int) -> bool:
        return self.reachable(mask & -mask, mask) == mask

    def links(self, left: int, right: int) -> tuple[int, ...]:
        """The classes that join two sets."""
        return tuple([n for n, mask in enumerate(self.masks) if mask & left and mask & right])


def mask_of(members: tuple[int, ...] | list[int]) -> int:
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def members_of(mask: int) -> Iterator[int]:
    """The relations of a set, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
