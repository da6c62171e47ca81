"""One maintenance step under construction: the inputs it has visited, the size of its delta, its cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spillway.maintain.graph import ViewGraph
from spillway.maintain.query_cost import QueryCost


@dataclass(frozen=True, slots=True)
class PartialStep:
    """The first queries of an instance; `visited` begins with the input whose delta it is."""

    visited: tuple[int, ...]
    rows: float
    seconds: float

    def extensions(self, graph: ViewGraph, model: QueryCost) -> Iterator[PartialStep]:
        """Every next query along edges, all edges to what was visited combined."""
        for node in graph.nodes:
            edges = graph.edges_between(self.visited, node)
            if edges:
                received = self.rows * model.matches(edges, node)
                seconds = model.query_seconds(edges, node, self.rows, received)
                yield PartialStep((*self.visited, node), received, self.seconds + seconds)
