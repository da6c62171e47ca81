"""The view graph: inputs are nodes, join conditions are edges (dissertation, 11.2.1).

All equalities between the same two inputs are one edge. The graph is connected: a view that needs a
Cartesian product is refused before a graph is made. Known limit: a path of all nodes is searched by
backtracking, nodes of few neighbours first, and the number of paths is limited: all of them on sparse
graphs of up to `EXACT_NODES` nodes, the most promising ones otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

EXACT_NODES = 12
"""Paths are enumerated up to here; their number grows with the factorial."""
_EXACT_PATHS = 5_000
"""How many paths are looked at there: all, unless the graph is dense."""
_HEURISTIC_PATHS = 500
"""How many paths are looked at beyond that many nodes."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`left.a = right.b AND ...`: the columns of two inputs that must be equal, pair by pair."""

    left: int
    right: int
    pairs: tuple[tuple[str, str], ...]

    def touches(self, node: int) -> bool:
        return node in (self.left, self.right)

    def other(self, node: int) -> int:
        """The end that is not `node`."""
        return self.right if node == self.left else self.left

    def columns(self, node: int) -> tuple[str, ...]:
        """The columns of `node` in this edge, in the order of the pairs."""
        return tuple(pair[0] if node == self.left else pair[1] for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class ViewGraph:
    """`names` are the inputs in FROM order; edges name them by position."""

    names: tuple[str, ...]
    edges: tuple[Edge, ...]

    @property
    def nodes(self) -> range:
        return range(len(self.names))

    def edges_between(self, covered: Collection[int], node: int) -> tuple[int, ...]:
        """The edges that join `node` to any of the `covered` nodes, by number."""
        return tuple(
            number
            for number, edge in enumerate(self.edges)
            if edge.touches(node) and edge.other(node) in covered and node not in covered
        )

    def neighbours(self, node: int) -> tuple[int, ...]:
        return tuple(sorted({edge.other(node) for edge in self.edges if edge.touches(node)}))

    def adjacent(self, covered: Collection[int], node: int) -> bool:
        return bool(self.edges_between(covered, node))

    def visit(self, covered: Collection[int], targets: Collection[int]) -> tuple[int, ...]:
        """An order of `targets` in which each has an edge to what is covered before it, if possible."""
        seen, left, order = set(covered), [node for node in targets if node not in covered], list[int]()
        while left:
            node = next((target for target in left if self.adjacent(seen, target)), left[0])
            order.append(node)
            seen.add(node)
            left.remove(node)
        return tuple(order)

    def connected(self) -> bool:
        seen = {0}
        for node in self.visit({0}, self.nodes):
            if not self.adjacent(seen, node):
                return False
            seen.add(node)
        return True

    def paths(self) -> Iterator[tuple[int, ...]]:
        """All longest paths that visit no node twice, each in one direction, the smaller end first."""
        return (path for path in longest_paths({n: self.neighbours(n) for n in self.nodes}))

    def path(self) -> tuple[int, ...]:
        """One of the longest paths: the first that visits all nodes, if there is one."""
        return longest_path({n: self.neighbours(n) for n in self.nodes})


def longest_paths(neighbours: dict[int, tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """The longest simple paths of a graph; for a graph with a Hamiltonian path these are all of them."""
    paths = list(_looked_at(neighbours))
    longest = max(map(len, paths))
    yield from sorted(path for path in paths if len(path) == longest and path[0] <= path[-1])


def longest_path(neighbours: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The first path of all nodes, or else the first of the longest."""
    best: tuple[int, ...] = ()
    for path in _looked_at(neighbours):
        if len(path) > len(best):
            best = path
        if len(best) == len(neighbours):
            break
    return min(best, best[::-1])


def _looked_at(neighbours: dict[int, tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    limit = _HEURISTIC_PATHS if len(neighbours) > EXACT_NODES else _EXACT_PATHS
    return islice(simple_paths(neighbours), limit)


def simple_paths(neighbours: dict[int, tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Every path that cannot be continued at its end; starts at nodes of few neighbours first."""

    def extend(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        further = sorted(
            (node for node in neighbours[path[-1]] if node not in path),
            key=lambda node: (len(neighbours[node]), node),
        )
        if not further:
            yield path
        for node in further:
            yield from extend((*path, node))

    for start in sorted(neighbours, key=lambda node: (len(neighbours[node]), node)):
        yield from extend((start,))
