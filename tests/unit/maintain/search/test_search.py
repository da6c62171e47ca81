"""Costs, regression and the search for plans."""

import json
import random
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt

import pytest

from spillway.maintain.choice import CostChoice, candidates
from spillway.maintain.graph import Edge, ViewGraph
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.regression import CostFunction, CostSample, fit
from spillway.maintain.round_report import RoundReport
from spillway.maintain.search.controlled import controlled_instance
from spillway.maintain.search.enumerate_steps import best_instance, instances
from spillway.maintain.search.grouping import best_grouping, grouping_paths
from spillway.maintain.search.step import PartialStep
from spillway.maintain.strategies.conditional import conditional_plan

NINE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (0, 4), (2, 6), (4, 8), (1, 5)]


def graph(n: int, ends: list[tuple[int, int]]) -> ViewGraph:
    return ViewGraph(tuple(f"r{k}" for k in range(n)), tuple(Edge(a, b, (("k", "k"),)) for a, b in ends))


def model(view: ViewGraph, seed: int = 0, largest_fanout: float = 3.0) -> QueryCost:
    """Sources of different speed, edges of different fan-out."""
    chance = random.Random(seed)
    directions = [(number, end) for number, edge in enumerate(view.edges) for end in (edge.left, edge.right)]
    return QueryCost(
        cardinalities=(1_000_000,) * len(view.names),
        attributes=(4,) * len(view.names),
        costs={
            direction: CostFunction(
                (chance.uniform(0.001, 0.02), 0.0, chance.uniform(1e-6, 1e-4), 0, 0, 0, 0)
            )
            for direction in directions
        },
        fanouts={direction: chance.uniform(0.3, largest_fanout) for direction in directions},
    )


@pytest.mark.parametrize(
    ("ends", "batch_plans", "grouping_plans"),
    [
        ([(0, 1), (1, 2), (2, 3)], 9, 2),
        ([(0, 1), (1, 2), (2, 3), (1, 3)], 108, 4),
        ([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 576, 12),
    ],
)
def test_table_11_1_the_number_of_available_plans(
    ends: list[tuple[int, int]], batch_plans: int, grouping_plans: int
) -> None:
    view = graph(4, ends)
    counts = [sum(1 for _ in instances(view, model(view), delta, 100)) for delta in view.nodes]
    assert counts[0] * counts[1] * counts[2] * counts[3] == batch_plans
    assert len(grouping_paths(view)) == grouping_plans


class CountingModel(QueryCost):
    """Counts the queries that a search looks at."""

    looked_at = 0

    def query_seconds(self, edges: Sequence[int], node: int, sent: float, received: float) -> float:
        CountingModel.looked_at += 1
        return super().query_seconds(edges, node, sent, received)


@pytest.mark.parametrize(("seed", "delta"), [(0, 0), (1, 7), (2, 8)])
def test_table_11_3_controlled_search_is_close_to_enumeration_with_a_tenth_of_its_work(
    seed: int, delta: int
) -> None:
    """A tenth of the queries looked at, and a tenth of the time."""
    view = graph(9, NINE)
    base = model(view, seed)
    costs = CountingModel(base.cardinalities, base.attributes, base.costs, base.fanouts)

    def search(find: Callable[[], PartialStep]) -> tuple[float, int, float]:
        CountingModel.looked_at = 0
        began = time.process_time()
        return find().seconds, CountingModel.looked_at, time.process_time() - began

    exact, enumerated, slow = search(lambda: best_instance(view, costs, delta, 500))
    close, controlled, fast = search(lambda: controlled_instance(view, costs, delta, 500, kept=20))
    greedy, least, _ = search(lambda: controlled_instance(view, costs, delta, 500, kept=1))
    assert exact <= close <= exact * 1.02
    assert close <= greedy
    assert least < controlled <= enumerated / 10
    assert fast <= slow / 10


@pytest.mark.parametrize("seed", range(20))
def test_without_a_limit_the_programme_is_exact(seed: int) -> None:
    view = graph(6, [*pairwise(range(6)), (0, 3), (2, 5)])
    costs = model(view, seed)
    for delta in view.nodes:
        exact = best_instance(view, costs, delta, 100).seconds
        assert controlled_instance(view, costs, delta, 100, kept=None).seconds == pytest.approx(exact)


def test_the_best_path_is_the_cheapest_of_all() -> None:
    view = graph(5, [*pairwise(range(5)), (0, 2), (1, 4)])
    costs = model(view, 3)
    _, estimate = best_grouping(view, costs, [50] * 5)
    every = [
        costs.estimate(conditional_plan(view, [50] * 5, path), [50] * 5).seconds
        for path in grouping_paths(view)
    ]
    assert estimate.seconds == min(every)
    assert max(every) > min(every)


def test_grouping_wins_small_rounds_and_recomputation_large_ones() -> None:
    view = graph(6, list(pairwise(range(6))))
    slow = CostFunction((0.1, 0.0, 1e-5, 0, 0, 0, 0))
    directions = [(number, end) for number, edge in enumerate(view.edges) for end in (edge.left, edge.right)]
    costs = QueryCost(
        (10**6,) * 6, (4,) * 6, dict.fromkeys(directions, slow), dict.fromkeys(directions, 1.0), 20.0
    )
    small = candidates(costs, view, [30] * 6)
    assert small[0].strategy == "conditional"
    batch = next(candidate for candidate in small if candidate.strategy == "extended-batch")
    assert batch.seconds / small[0].seconds == pytest.approx(3.0, rel=0.1)  # 30 queries against 10
    assert candidates(costs, view, [10**6] * 6)[0].strategy == "recompute"


def test_rounds_correct_the_estimates() -> None:
    view = graph(3, list(pairwise(range(3))))
    costs = model(view)
    sizes = [100] * 3
    plan = conditional_plan(view, sizes)
    before = costs.estimate(plan, sizes).seconds
    slower = costs
    for _ in range(20):  # every source takes five times as long as the samples said, and so do we
        queries = [
            (node, 100, 5 * sum(cost(100, 1) for (_, to), cost in costs.costs.items() if to == node) / number)
            for node, number in ((0, 1), (1, 2), (2, 1))
        ]
        local = 3 * costs.local_step_seconds + 600 * costs.local_row_seconds
        slower = slower.learned(queries, 5 * local, 600)
    assert slower.estimate(plan, sizes).seconds == pytest.approx(5 * before, rel=0.02)
    assert slower.differs(costs)
    assert not slower.differs(slower)
    assert QueryCost.of_document(json.loads(json.dumps(slower.document()))) == slower


def test_a_choice_is_kept_until_the_estimates_move() -> None:
    view = graph(6, list(pairwise(range(6))))
    choice = CostChoice()
    choice.prepare(lambda: model(view))
    first = choice.plan(view, [100] * 6)
    assert choice.plan(view, [120] * 6) is first
    assert choice.plan(view, [1000] * 6) is not first
    assert choice.plan(view, [0] + [100] * 5) != first
    report = RoundReport(1, "conditional", 600, query_seconds=60.0, maintain_seconds=61.0)
    report.costs = [(node, 100, 1, 10.0) for node in range(6)]
    choice.observe(report)
    assert choice.plan(view, [100] * 6) is not first
    choice.observe(RoundReport(2, "recompute", 600, maintain_seconds=1e-6))
    assert choice.plan(view, [100] * 6) is None


def test_regression_recovers_the_terms_it_was_made_of() -> None:
    chance = random.Random(1)
    samples = [
        CostSample(rows, attributes, (0.05 + 2e-5 * rows + 1e-3 * sqrt(rows)) * chance.uniform(0.99, 1.01))
        for rows in (10, 50, 100, 500, 1000, 5000, 20_000)
        for attributes in (2, 4, 6)
    ]
    fitted = fit(samples)
    for rows, attributes in ((30, 3), (700, 5), (50_000, 2)):
        truth = 0.05 + 2e-5 * rows + 1e-3 * sqrt(rows)
        assert fitted(rows, attributes) == pytest.approx(truth, rel=0.05)
    assert sum(1 for value in fitted.coefficients if value) <= 4
    assert fit([CostSample(10, 1, 0.5), CostSample(100, 1, 0.5), CostSample(1000, 1, 0.5)])(
        9, 1
    ) == pytest.approx(0.5)


def test_the_network_makes_wide_answers_expensive() -> None:
    view = graph(3, list(pairwise(range(3))))
    near = model(view)
    far = QueryCost(near.cardinalities, near.attributes, near.costs, near.fanouts, delay_seconds=0.005)
    plan = conditional_plan(view, [100] * 3)
    assert far.estimate(plan, [100] * 3).seconds > 2 * near.estimate(plan, [100] * 3).seconds
    assert QueryCost.of_document(far.document()) == far
