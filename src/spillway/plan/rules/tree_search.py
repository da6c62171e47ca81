"""The trees of m-way joins with the least expected work: rows that are kept, and candidates that are tested.

A join takes parts that share at least one class of equal terms, and its key is made of all classes that all
of its parts share. So inputs that share two keys are joined on both, unless a wider join on one of them is
less work. Several inputs of one class are joined at once: that keeps no rows between them.

Up to `MOST_PARTS` inputs the search is exhaustive, by subsets. Of more, the joins with the least work are
taken first, one after the other, until so few parts are left. Works that differ by about a hundredth are
equal; then fewer levels win, then the tree that joins filtered inputs, and those that the view names first,
further down. Every tree keeps the rows of its inputs; they count, so that little beside them makes no levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log1p

from spillway.plan.operators import JoinSize, Shape, SizedTree
from spillway.plan.rules.join_sizes import JoinSizes, members

MOST_PARTS = 7
BEST = 2
"""The best tree and its runner-up."""
SAME_WORK = 1.02
"""What is more work than this times another is never equal to it."""
NO_JOIN = JoinSize(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Part:
    """Inputs that are joined already, and how."""

    mask: int
    work: float
    height: int = 0
    children: tuple[_Part, ...] = ()
    size: JoinSize = NO_JOIN
    """Of the last join."""


class TreeSearch:
    """Trees over the inputs of one view, which are connected."""

    def __init__(self, names: Sequence[str], filtered: Sequence[bool], sizes: JoinSizes) -> None:
        self._names = names
        self._sizes = sizes
        order = sorted(range(len(names)), key=lambda number: (not filtered[number], number))
        self._rank = {number: rank for rank, number in enumerate(order)}
        self._everything = (1 << len(names)) - 1
        self._trees: dict[int, list[_Part]] = {}
        """The best trees by the inputs that they join; none if these are not connected."""

    def best(self) -> list[SizedTree]:
        """The best trees, at most `BEST`."""
        masks = [1 << number for number in range(len(self._names))]
        parts = [_Part(mask, self._sizes.rows(mask)) for mask in masks]
        while len(parts) > MOST_PARTS:
            cheapest = min(self._choices(parts), key=self._own_order)
            parts = [part for part in parts if not part.mask & cheapest.mask]
            parts = sorted([*parts, cheapest], key=lambda part: part.mask & -part.mask)
        self._trees = {part.mask: [part] for part in parts}
        masks = [part.mask for part in parts]
        for chosen in range(1, 1 << len(parts)):
            within = [masks[number] for number in members(chosen)]
            if len(within) > 1:
                self._trees[sum(within)] = self._over(within)
        return [SizedTree(self._shape(tree), tuple(_sizes(tree))) for tree in self._trees[self._everything]]

    def _choices(self, parts: Sequence[_Part]) -> Iterator[_Part]:
        """Joins that may come next: of all parts that have a class, and of two."""
        having: dict[int, list[_Part]] = {}
        for part in parts:
            for key_class in self._sizes.classes(part.mask):
                having.setdefault(key_class, []).append(part)
        for of_class in having.values():
            if len(of_class) > 1:
                yield self._joined(of_class)
            for pair in combinations(of_class, 2):
                yield self._joined(pair)

    def _over(self, masks: Sequence[int]) -> list[_Part]:
        """The best trees over all of these parts."""
        found: list[_Part] = []
        for split in self._splits(masks, ()):
            least = self._sizes.rows(sum(masks))  # candidates of the last join
            best = [self._trees[mask][0] for mask in split]
            for parts in (best, *self._next_best(best)):
                if len(found) == BEST and sum(part.work for part in parts) + least > _limit(found):
                    continue
                tree = self._joined(parts)
                if len(found) < BEST or tree.work <= _limit(found):
                    found = sorted([*found, tree], key=self._order)[:BEST]
        return found

    def _next_best(self, best: list[_Part]) -> Iterator[list[_Part]]:
        """The same parts, one of them joined in its second best way."""
        for place, part in enumerate(best):
            for other in self._trees[part.mask][1:]:
                yield [*best[:place], other, *best[place + 1 :]]

    def _splits(
        self, masks: Sequence[int], taken: tuple[int, ...], shared: frozenset[int] | None = None
    ) -> Iterator[tuple[int, ...]]:
        """All divisions of these parts into connected sets that share a class with those that are taken."""
        if not masks:
            yield taken
            return
        first, others = masks[0], masks[1:]
        for chosen in range(1 << len(others)):
            inside = [others[number] for number in members(chosen)]
            mask = first + sum(inside)
            if (not taken and len(inside) == len(others)) or not self._trees.get(mask):
                continue
            classes = self._sizes.classes(mask) if shared is None else self._sizes.classes(mask) & shared
            if classes:
                rest = [other for other in others if other not in inside]
                yield from self._splits(rest, (*taken, mask), classes)

    def _joined(self, parts: Sequence[_Part]) -> _Part:
        children = tuple(sorted(parts, key=lambda part: part.mask & -part.mask))
        masks = [child.mask for child in children]
        mask = sum(masks)
        shared = frozenset.intersection(*(self._sizes.classes(child) for child in masks))
        size = JoinSize(self._sizes.candidates(masks, shared), self._sizes.rows(mask))
        kept = 0.0 if mask == self._everything else size.results
        work = sum(child.work for child in children) + size.candidates + kept
        return _Part(mask, work, 1 + max(child.height for child in children), children, size)

    def _order(self, tree: _Part) -> tuple[object, ...]:
        return round(log1p(tree.work), 2), tree.height, self._place(tree)

    def _own_order(self, tree: _Part) -> tuple[object, ...]:
        """By the work of the last join alone."""
        return round(log1p(tree.size.candidates + tree.size.results), 2), tree.height, self._place(tree)

    def _place(self, tree: _Part) -> tuple[tuple[int, ...], ...]:
        """The ranks of the inputs of each join, the lowest join first."""
        below = sorted(self._place(child) for child in tree.children if child.children)
        own = tuple(sorted(self._rank[member] for member in members(tree.mask)))
        return (*(join for place in below for join in place), own)

    def _shape(self, tree: _Part) -> Shape:
        if not tree.children:
            return self._names[tree.mask.bit_length() - 1]
        return tuple(self._shape(child) for child in tree.children)


def _limit(found: Sequence[_Part]) -> float:
    """A tree with more work is worse than all that are found."""
    return found[-1].work * SAME_WORK


def _sizes(tree: _Part) -> Iterator[JoinSize]:
    """Children come before their parents."""
    for child in tree.children:
        yield from _sizes(child)
    if tree.children:
        yield tree.size
