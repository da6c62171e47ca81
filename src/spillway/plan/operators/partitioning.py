"""How the rows of a tree are spread over groups: each join by its own key, or all joins alike.

By its own key (`tree`) is the default: no row is kept twice, and results travel to the group of the next
join's key. If all joins use the same classes, a row stays in one group through the whole tree, and an input
that lacks one of the classes is copied to every group that it could meet. `replicate` uses the class that
most inputs have; `multi-partition` uses all classes as the sides of a grid of groups. A result has one value
of each class, so exactly one group produces it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from spillway.errors import ViewError
from spillway.model import GroupSet, group_set

TREE = "tree"
REPLICATE = "replicate"
MULTI_PARTITION = "multi-partition"
JOIN_KINDS = (TREE, REPLICATE, MULTI_PARTITION)


def check_join_kind(kind: str) -> None:
    if kind not in JOIN_KINDS:
        raise ViewError(f"join = {kind!r}: must be one of {', '.join(JOIN_KINDS)}")


def partition_classes(kind: str, leaf_classes: Sequence[Collection[int]]) -> tuple[int, ...]:
    """The classes that partition all joins; none: each join uses its own key."""
    classes = sorted({key_class for classes in leaf_classes for key_class in classes})
    if kind == TREE:
        return ()
    if kind == MULTI_PARTITION:
        return tuple(classes)
    return (max(classes, key=lambda key_class: sum(key_class in of_leaf for of_leaf in leaf_classes)),)


@dataclass(frozen=True, slots=True)
class Grid:
    """Groups as cells of a grid: the group of a row is the sum of its coordinates times their weights."""

    classes: tuple[int, ...]
    shares: tuple[int, ...]
    """The number of parts per class; their product is the number of groups."""

    @staticmethod
    def of(classes: Sequence[int], groups: int) -> Grid:
        """Shares as equal as the divisors of the number of groups allow, the largest first."""
        if not classes:
            return Grid((), ())
        shares = [1 for _ in classes]
        for factor in sorted(_prime_factors(groups), reverse=True):
            shares[shares.index(min(shares))] *= factor
        return Grid(tuple(classes), tuple(sorted(shares, reverse=True)))

    @property
    def weights(self) -> tuple[int, ...]:
        return tuple(prod(self.shares[position + 1 :]) for position in range(len(self.shares)))

    def copies(self, classes: Collection[int]) -> int:
        """The number of groups that get a row of an input with these classes."""
        return prod(
            share
            for key_class, share in zip(self.classes, self.shares, strict=True)
            if key_class not in classes
        )

    def first_copies(self, classes: Collection[int]) -> GroupSet:
        """The groups with the first copy of each row of such an input: missing coordinates are 0."""
        return group_set(
            group
            for group in range(prod(self.shares))
            if all(
                key_class in classes or group // weight % share == 0
                for key_class, share, weight in zip(self.classes, self.shares, self.weights, strict=True)
            )
        )


def _prime_factors(number: int) -> list[int]:
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
        if divisor * divisor > number > 1:
            found.append(number)
            break
    return found
