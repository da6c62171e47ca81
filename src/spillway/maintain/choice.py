"""Which plan a round takes: a strategy by name, or the cheapest by estimate, full recomputation included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from spillway.maintain.calibration import save_costs
from spillway.maintain.graph import ViewGraph
from spillway.maintain.plan import RECOMPUTE, MaintenancePlan
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.round_report import RoundReport
from spillway.maintain.search import best_grouping, controlled_instance
from spillway.maintain.settings import AUTO
from spillway.maintain.strategies import adjacent_plan, extended_batch_plan, greedy_plan, plan_round
from spillway.maintain.view_store import ViewStore

Learn = Callable[[], QueryCost]
"""Costs from the store or from sample queries; the latter take seconds."""


class PlanChooser(Protocol):
    """Chooses the plan of every round of one view."""

    def prepare(self, learn: Learn, /) -> None:
        """Called before a round is cut: learn what is not known yet."""

    def plan(self, graph: ViewGraph, sizes: Sequence[int], /) -> MaintenancePlan | None:
        """The plan for deltas of these sizes; None: recompute."""

    def observe(self, report: RoundReport, /) -> None:
        """Learn from a committed round."""

    def save(self, store: ViewStore, /) -> None:
        """Keep what was learned for the next run."""


@dataclass(frozen=True, slots=True)
class FixedChoice:
    """Plans by a function of the sizes; nothing is learned."""

    plan: Callable[[ViewGraph, Sequence[int]], MaintenancePlan | None]

    def prepare(self, learn: Learn, /) -> None: ...

    def observe(self, report: RoundReport, /) -> None: ...

    def save(self, store: ViewStore, /) -> None: ...


class CostChoice:
    """The cheapest candidate of every round; every round corrects the estimates.

    Comparing plans takes tens of milliseconds. A choice is kept for rounds of about the same sizes (to a
    factor of two), until the estimates have moved.
    """

    def __init__(self) -> None:
        self._costs: QueryCost | None = None
        self._kept: dict[tuple[int, ...], MaintenancePlan | None] = {}
        self._kept_with: QueryCost | None = None

    @property
    def costs(self) -> QueryCost:
        """What has been learned so far."""
        assert self._costs is not None, "prepare comes first"
        return self._costs

    def prepare(self, learn: Learn, /) -> None:
        if self._costs is None:
            self._costs = learn()

    def plan(self, graph: ViewGraph, sizes: Sequence[int], /) -> MaintenancePlan | None:
        if self._kept_with is None or self.costs.differs(self._kept_with):
            self._kept, self._kept_with = {}, self.costs
        about = tuple(size.bit_length() for size in sizes)
        if about not in self._kept:
            self._kept[about] = candidates(self.costs, graph, sizes)[0].plan
        return self._kept[about]

    def observe(self, report: RoundReport, /) -> None:
        """Learn what the queries of a round took, and how many rows the sources have now."""
        costs = self.costs.grown(report.net_rows)
        if report.strategy == RECOMPUTE:
            costs = replace(costs, recompute_seconds=report.maintain_seconds)
        elif report.costs:
            queries = [(node, keys, seconds) for node, keys, _, seconds in report.costs]
            local = max(0.0, report.maintain_seconds - report.query_seconds)
            costs = costs.learned(queries, local, report.keys_sent + report.joined_rows)
        self._costs = costs

    def save(self, store: ViewStore, /) -> None:
        if self._costs is not None:
            save_costs(store, self._costs)


def choose_by_name(strategy: str) -> PlanChooser:
    """The choice that a job asks for: by cost, or the same strategy in every round."""
    if strategy == AUTO:
        return CostChoice()
    return FixedChoice((lambda *_: None) if strategy == RECOMPUTE else partial(plan_round, strategy))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to do a round; without a plan it is recomputation."""

    strategy: str
    plan: MaintenancePlan | None
    seconds: float


def candidates(costs: QueryCost, graph: ViewGraph, sizes: Sequence[int]) -> list[Candidate]:
    """The best plan of each kind, cheapest first; the sources already hold the rows of the round.

    A plan with Cartesian products is no candidate while the size of a table in them is not known: a table
    that was empty may hold anything soon.
    """
    sized = [node for node in graph.nodes if costs.cardinalities[node] > 0]
    costs = costs.grown(sizes)
    orders = {
        node: controlled_instance(graph, costs, node, sizes[node]).visited[1:]
        for node in graph.nodes
        if sizes[node]
    }
    grouping, estimate = best_grouping(graph, costs, sizes)
    found = [Candidate(grouping.strategy, grouping, estimate.seconds)]
    found += [
        Candidate(plan.strategy, plan, costs.estimate(plan, sizes).seconds)
        for plan in (
            extended_batch_plan(graph, sizes, orders),
            adjacent_plan(graph, sizes),
            greedy_plan(graph, sizes),
        )
        if plan.products().issubset(sized)
    ]
    found.append(Candidate(RECOMPUTE, None, costs.recompute_seconds))
    return sorted(found, key=lambda candidate: candidate.seconds)
