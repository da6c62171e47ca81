"""Expected rows of the join of any set of relations.

Rows multiply, and each key class lets a share of the product pass. Of a class with several members in the set
the shares of a spanning tree are multiplied, the most selective pairs first; classes are independent. The
estimate depends on the set only, never on the order of joins. Known limit: a key that is frequent in three or
more members of one class together is underestimated, because shares are known for pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spillway.compute.join_graph import JoinGraph, JoinKey, members_of


class Cardinality:
    """Estimates over one graph; each set is estimated once."""

    __slots__ = ("_graph", "_known", "_row_bytes", "_shares")

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._known: dict[int, float] = {}
        self._row_bytes: dict[int, float] = {}
        self._shares: dict[tuple[int, int], float] = {}

    def rows(self, mask: int) -> float:
        """Rows of the join of the relations in `mask`."""
        found = self._known.get(mask)
        if found is None:
            found = self._known[mask] = self._estimate(mask)
        return found

    def row_bytes(self, mask: int) -> float:
        found = self._row_bytes.get(mask)
        if found is None:
            found = sum(self._graph.relations[index].row_bytes for index in members_of(mask))
            self._row_bytes[mask] = found
        return found

    def matches(self, number: int, left: int, right: int) -> float:
        """Pairs of rows of two sets that one key class alone lets pass."""
        key, members = self._graph.classes[number], self._graph.masks[number]
        share = 1.0
        for mask, sign in ((left | right, 1), (left, -1), (right, -1)):
            present = members & mask
            if present & (present - 1):
                share *= self._share(number, key, present) ** sign
        return self.rows(left) * self.rows(right) * share

    def by_matches(self, classes: Sequence[int], left: int, right: int) -> tuple[int, ...]:
        """The classes that join two sets, the most selective first."""
        return tuple(sorted(classes, key=lambda number: self.matches(number, left, right)))

    def _estimate(self, mask: int) -> float:
        rows = prod(self._graph.relations[index].rows for index in members_of(mask))
        for number, members in enumerate(self._graph.masks):
            present = members & mask
            if present & (present - 1):
                rows *= self._share(number, self._graph.classes[number], present)
        for needed in self._graph.residual:
            if needed & mask == needed:
                rows *= self._graph.residual_selectivity
        return rows

    def _share(self, number: int, key: JoinKey, present: int) -> float:
        found = self._shares.get((number, present))
        if found is None:
            found = self._shares[number, present] = _spanning_share(key, tuple(members_of(present)))
        return found


def _spanning_share(key: JoinKey, members: tuple[int, ...]) -> float:
    """The product of the selectivities of a minimum spanning tree (Prim)."""
    share = 1.0
    reached, waiting = {members[0]}, set(members[1:])
    while waiting:
        selectivity, nearest = min(
            (key.selectivity[min(a, b), max(a, b)], b) for a in reached for b in waiting
        )
        share *= selectivity
        reached.add(nearest)
        waiting.remove(nearest)
    return share
