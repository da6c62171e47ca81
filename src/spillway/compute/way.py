"""The ways to compute a view: by columns, as statements of our tree, or by Spark's own plan.

Spark's own plan runs unless another way is expected to be clearly faster, so a wrong estimate costs little.
It never runs if a memory limit was given, because Spark does not keep to it. Known limit: the time of Spark's
own plan is estimated from the order of joins as written, without adaptive execution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from spillway.compute.cost import TreeCost
from spillway.compute.join_graph import JoinGraph
from spillway.compute.tree import Input, Segment
from spillway.compute.unit_costs import COLUMNAR

COLUMNS, STATEMENTS, SPARK = "columns", "statements", "spark"
STATISTICS_SHARE, LEAST_STATISTICS_SECONDS = 0.05, 0.1
"""Statistics may take this share of the expected time, and at least as long as opening some files takes."""
CLEAR_GAIN = {COLUMNS: 1.2, STATEMENTS: 1.5}
"""How many times as fast as Spark's own plan a way must be by its estimate. Statements must promise more:
they are Spark jobs like its own plan, and only the order of joins and the sides that are built differ."""
RELATION_SECONDS = 0.05
"""What each relation of Spark's own plan costs besides its rows: with 12 small relations it took 0.9 s."""
ROW_SECONDS, LEAST_SECONDS = 4e-7, 0.2
"""The time of Spark's own plan from rows alone, before anything else is known."""


@dataclass(frozen=True, slots=True)
class WayChoice:
    """The chosen way, and the reason for the user."""

    way: str
    reason: str


def expected_seconds(rows: Sequence[float], processors: int) -> float:
    """About how long Spark takes for a join of relations with these rows."""
    return LEAST_SECONDS + RELATION_SECONDS * len(rows) + ROW_SECONDS * sum(rows) / processors


def statistics_seconds(expected: float) -> float:
    """How long statistics may take if the whole computation is expected to take `expected` seconds."""
    return max(LEAST_STATISTICS_SECONDS, STATISTICS_SHARE * expected)


def as_written(graph: JoinGraph) -> Segment:
    """The joins in the order of the view; a relation that no key joins yet waits, as in Spark."""
    joined, waiting = 1, list(range(1, graph.size))
    builds: list[Input] = []
    while waiting:
        found = next(relation for relation in waiting if graph.links(joined, 1 << relation))
        waiting.remove(found)
        builds.append(found)
        joined |= 1 << found
    return Segment(0, tuple(builds))


def spark_seconds(statements: TreeCost, tree: Segment | None = None) -> float:
    """How long Spark is expected to take for a tree, or for its own plan.

    The costs of trees leave out making the rows of the result, because it is the same for all trees. Here it
    is counted as for tasks that join columns."""
    graph, cardinality = statements.graph, statements.cardinality
    result = cardinality.rows(graph.everything) * cardinality.row_bytes(graph.everything)
    joining = statements.seconds(tree or as_written(graph))
    return joining + RELATION_SECONDS * graph.size + result * COLUMNAR.keep


def joined_on_several_keys(graph: JoinGraph) -> tuple[str, str] | None:
    """Two relations that several keys join; it is not known how those keys depend on each other."""
    for left, right in combinations(range(graph.size), 2):
        if len(graph.links(1 << left, 1 << right)) > 1:
            return graph.relations[left].name, graph.relations[right].name
    return None


def decide(seconds: Mapping[str, float], own_seconds: float, refusals: dict[str, str]) -> WayChoice:
    """The way to take if the user set no memory limit and asked for no tree.

    `seconds` are the estimates of possible ways; `refusals` gets the reasons against those that gain too
    little.
    """
    for way in (COLUMNS, STATEMENTS):
        if way not in seconds:
            continue
        gain = own_seconds / max(seconds[way], 1e-9)
        if gain >= CLEAR_GAIN[way]:
            return WayChoice(way, f"estimated {gain:.1f} times as fast as Spark's own plan")
        refusals.setdefault(
            way,
            f"{way}: estimated {gain:.1f} times as fast, and {CLEAR_GAIN[way]:g} would be a clear gain",
        )
    return WayChoice(SPARK, "no clear gain is expected from another way; " + "; ".join(refusals.values()))
