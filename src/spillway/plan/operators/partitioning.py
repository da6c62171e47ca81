"""How the rows of a tree are spread over groups: each join by its own key, or all joins alike.

By its own key (`tree`) is the rule: no row is kept twice, and results travel to the group of the next join's
key. If all joins use the same classes, a row has one group on its way through the whole tree, and an input
that lacks one of the classes is copied to all groups that it could meet. `replicate` uses the one class that
most inputs have; `multi-partition` uses all, each with its share of the groups, as the sides of a grid.
A result has one value of each class, so it is found in one group only.
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
        raise ViewError(f"join: there is no {kind!r}; use one of {', '.join(JOIN_KINDS)}")


def partition_classes(kind: str, leaf_classes: Sequence[Collection[int]]) -> tuple[int, ...]:
    """The classes by which the groups of all joins are made; none: each join has its own."""
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
    """Per class, how many parts it has; their product is the number of groups."""

    @staticmethod
    def of(classes: Sequence[int], groups: int) -> Grid:
        """Shares as equal as the divisors of the number of groups allow; the first are the larger ones."""
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
        """How many groups get a row of an input that has these classes."""
        return prod(
            share
            for key_class, share in zip(self.classes, self.shares, strict=True)
            if key_class not in classes
        )

    def first_copies(self, classes: Collection[int]) -> GroupSet:
        """The groups with the first copy of each row of such an input: coordinates that it lacks are 0."""
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
