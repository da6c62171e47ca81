"""What a plan costs: its steps walked with estimated sizes instead of rows (11.3.1).

Every edge has a cost function and a fan-out per direction: how many rows of the asked input match one row of
the delta. Edges that are evaluated together cost their average and multiply their selectivities. One walk
serves every strategy, because a plan says what is sent where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from spillway.maintain.plan import MaintenancePlan, MaintenanceQuery, Take
from spillway.maintain.regression import CostFunction

_NEWEST = 0.3
"""The weight of the newest round."""
_FURTHEST = 20.0
_MOVED = 1.2
Direction = tuple[int, int]
"""An edge by its number, and the input that is asked."""


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """One query of a plan."""

    input: int
    rows_sent: float
    rows_received: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """A plan's queries in order and its total time."""

    queries: tuple[QueryEstimate, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class QueryCost:
    """The learned costs of one view."""

    cardinalities: tuple[int, ...]
    attributes: tuple[int, ...]
    costs: Mapping[Direction, CostFunction]
    fanouts: Mapping[Direction, float]
    recompute_seconds: float = float("inf")
    local_row_seconds: float = 2e-6
    """The view manager's own work per row of a result."""
    local_step_seconds: float = 3e-3
    """The view manager's own work per query, whatever its size."""
    delay_seconds: float = 0.0
    """Network: the time to transfer one value, either way."""
    source_factors: Mapping[int, float] = field(default_factory=dict)
    """What rounds since the samples have shown of an input: its queries take this many times as long."""
    local_factor: float = 1.0
    """The same for the view manager's own work."""

    def matches(self, edges: Sequence[int], node: int) -> float:
        """Rows of `node` that match one row of a delta by all of `edges`; without edges, all rows."""
        size = max(1, self.cardinalities[node])
        return size * prod(self.fanouts[edge, node] / size for edge in edges)

    def query_seconds(self, edges: Sequence[int], node: int, sent: float, received: float) -> float:
        """The time of one query; nothing to send costs nothing."""
        if sent <= 0:
            return 0.0
        width = self.attributes[node]
        transfer = self.delay_seconds * (sent * max(1, len(edges)) + received * width)
        if not edges:  # all rows of the source
            return transfer + self._factor(node) * self._average(node, self.cardinalities[node])
        average = sum(self.costs[edge, node](sent, 1) for edge in edges) / len(edges)
        return transfer + self._factor(node) * average

    def estimate(self, plan: MaintenancePlan, sizes: Sequence[float]) -> PlanEstimate:
        """The queries of a plan for deltas of these sizes, and the time of all of it."""
        rows: dict[int, float] = dict(enumerate(map(float, sizes)))
        queries = []
        seconds = 0.0
        for step in plan.steps:
            if isinstance(step, Take):
                rows[step.write] = 1.0
            elif isinstance(step, MaintenanceQuery):
                estimate = self._query(step, rows)
                local = self.local_step_seconds + self.local_row_seconds * (
                    estimate.rows_sent + sum(rows[part.write] for part in step.parts)
                )
                seconds += estimate.seconds + (self.local_factor * local if estimate.rows_sent else 0.0)
                queries.append(estimate)
            else:
                rows[step.write] = sum(rows[read] for read in step.reads)
        return PlanEstimate(tuple(queries), seconds)

    def learned(
        self, queries: Sequence[tuple[int, int, float]], local_seconds: float, rows: int
    ) -> QueryCost:
        """The model after a round: its queries as (input, keys, seconds), and its own work on `rows`."""
        factors = dict(self.source_factors)
        for node in {node for node, _, _ in queries}:
            mine = [(keys, seconds) for asked, keys, seconds in queries if asked == node]
            expected = sum(self._average(node, keys) for keys, _ in mine)
            if expected > 0:
                observed = sum(seconds for _, seconds in mine) / expected
                factors[node] = _moved(self._factor(node), observed)
        expected = self.local_step_seconds * len(queries) + self.local_row_seconds * rows
        local = _moved(self.local_factor, local_seconds / expected) if queries else self.local_factor
        return replace(self, source_factors=factors, local_factor=local)

    def grown(self, rows: Sequence[int]) -> QueryCost:
        """The model after each input grew by its number of `rows`, or shrank."""
        if not any(rows):
            return self
        pairs = zip(self.cardinalities, rows, strict=True)
        return replace(self, cardinalities=tuple(max(0, size + more) for size, more in pairs))

    def differs(self, other: QueryCost) -> bool:
        """Whether rounds since then have moved an estimate, or the size of an input, by more than a fifth."""
        nodes = {*self.source_factors, *other.source_factors}
        pairs = [(self._factor(node), other._factor(node)) for node in nodes]
        pairs += [
            (self.local_factor, other.local_factor),
            (self.recompute_seconds, other.recompute_seconds),
        ]
        sizes = zip(self.cardinalities, other.cardinalities, strict=True)
        pairs += [(float(now or 0.1), float(then or 0.1)) for now, then in sizes]
        return any(max(pair) > _MOVED * min(pair) for pair in pairs)

    def _factor(self, node: int) -> float:
        return self.source_factors.get(node, 1.0)

    def _average(self, node: int, keys: float) -> float:
        """The time of a query by the samples, over all edges by which `node` may be asked."""
        known = [cost(keys, 1) for (_, to), cost in self.costs.items() if to == node]
        return sum(known) / len(known) if known else 0.0

    def _query(self, query: MaintenanceQuery, rows: dict[int, float]) -> QueryEstimate:
        sent: dict[tuple[int, ...], float] = {}
        for part in query.parts:
            sent[part.edges] = sent.get(part.edges, 0.0) + rows[part.read]
            both = (*part.edges, *part.local)
            rows[part.write] = rows[part.read] * self.matches(both, query.input)
        seconds = received = 0.0
        for edges, count in sent.items():
            matched = min(count * self.matches(edges, query.input), self.cardinalities[query.input])
            seconds += self.query_seconds(edges, query.input, count, matched)
            received += matched if count else 0.0
        return QueryEstimate(query.input, sum(sent.values()), received, seconds)

    def document(self) -> dict[str, Any]:
        """For the view store, as JSON."""
        return {
            "cardinalities": self.cardinalities,
            "attributes": self.attributes,
            "costs": [[*key, list(cost.coefficients)] for key, cost in self.costs.items()],
            "fanouts": [[*key, value] for key, value in self.fanouts.items()],
            "recompute_seconds": self.recompute_seconds,
            "delay_seconds": self.delay_seconds,
            "source_factors": [[node, factor] for node, factor in self.source_factors.items()],
            "local_factor": self.local_factor,
        }

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> QueryCost:
        return QueryCost(
            cardinalities=tuple(document["cardinalities"]),
            attributes=tuple(document["attributes"]),
            costs={(edge, node): CostFunction(tuple(values)) for edge, node, values in document["costs"]},
            fanouts={(edge, node): value for edge, node, value in document["fanouts"]},
            recompute_seconds=document["recompute_seconds"],
            delay_seconds=document["delay_seconds"],
            source_factors=dict(document.get("source_factors", ())),
            local_factor=document.get("local_factor", 1.0),
        )


def _moved(factor: float, observed: float) -> float:
    """A factor moved part of the way to what was observed, which is bounded."""
    return factor + _NEWEST * (min(max(observed, 1 / _FURTHEST), _FURTHEST) - factor)
