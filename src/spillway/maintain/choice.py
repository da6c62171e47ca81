"""Which plan a round takes: a strategy by name, or the cheapest by estimate, full recomputation included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import RECOMPUTE, MaintenancePlan
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.search import best_grouping, controlled_instance
from spillway.maintain.strategies import adjacent_plan, extended_batch_plan, greedy_plan, plan_round
from spillway.maintain.view_manager import Choose, RoundReport


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to do a round; without a plan it is recomputation."""

    strategy: str
    plan: MaintenancePlan | None
    seconds: float


def candidates(model: QueryCost, graph: ViewGraph, sizes: Sequence[int]) -> list[Candidate]:
    """The best plan of each kind, cheapest first; sources hold the rows of the round by now.

    A plan with Cartesian products is no candidate while the size of a table in them is not known: one that
    was empty may hold anything soon."""
    sized = [node for node in graph.nodes if model.cardinalities[node] > 0]
    model = model.grown(sizes)
    orders = {
        node: controlled_instance(graph, model, node, sizes[node]).visited[1:]
        for node in graph.nodes
        if sizes[node]
    }
    grouping, estimate = best_grouping(graph, model, sizes)
    found = [Candidate(grouping.strategy, grouping, estimate.seconds)]
    found += [
        Candidate(plan.strategy, plan, model.estimate(plan, sizes).seconds)
        for plan in (
            extended_batch_plan(graph, sizes, orders),
            adjacent_plan(graph, sizes),
            greedy_plan(graph, sizes),
        )
        if plan.products().issubset(sized)
    ]
    found.append(Candidate(RECOMPUTE, None, model.recompute_seconds))
    return sorted(found, key=lambda one: one.seconds)


class CostChoice:
    """The cheapest candidate of every round; every round corrects the estimates.

    Comparing plans takes tens of milliseconds. A choice is kept for rounds of about the same sizes (to a
    factor of two), until the estimates have moved.
    """

    def __init__(self, model: QueryCost, graph: ViewGraph) -> None:
        self.model = model
        self._graph = graph
        self._kept: dict[tuple[int, ...], MaintenancePlan | None] = {}
        self._kept_with = model

    def __call__(self, sizes: Sequence[int]) -> MaintenancePlan | None:
        if self.model.differs(self._kept_with):
            self._kept, self._kept_with = {}, self.model
        about = tuple(size.bit_length() for size in sizes)
        if about not in self._kept:
            self._kept[about] = candidates(self.model, self._graph, sizes)[0].plan
        return self._kept[about]

    def observe(self, report: RoundReport) -> None:
        """Learn from a round: what its queries took, and how many rows the sources have now."""
        self.model = self.model.grown(report.net_rows)
        if report.strategy == RECOMPUTE:
            self.model = replace(self.model, recompute_seconds=report.maintain_seconds)
        elif report.costs:
            queries = [(node, keys, seconds) for node, keys, _, seconds in report.costs]
            local = max(0.0, report.maintain_seconds - report.query_seconds)
            rows = report.keys_sent + report.joined_rows
            self.model = self.model.learned(queries, local, rows)


def choose_by_name(strategy: str, graph: ViewGraph) -> Choose:
    """The same strategy in every round."""
    if strategy == RECOMPUTE:
        return lambda _: None
    return lambda sizes: plan_round(strategy, graph, sizes)
