"""What a plan costs: its steps walked with estimated sizes instead of rows (11.3.1).

Every edge has a cost function and a fan-out per direction: how many rows of the asked input match one row of
the delta. Edges that are evaluated together cost their average and multiply their selectivities. One walk
serves every strategy, because a plan says what is sent where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from spillway.maintain.plan import MaintenancePlan, Query, Take
from spillway.maintain.regression import CostFunction

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
class CostModel:
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
            known = [cost(self.cardinalities[node], 1) for (_, to), cost in self.costs.items() if to == node]
            return transfer + (sum(known) / len(known) if known else 0.0)
        average = sum(self.costs[edge, node](sent, 1) for edge in edges) / len(edges)
        return transfer + average

    def estimate(self, plan: MaintenancePlan, sizes: Sequence[float]) -> PlanEstimate:
        """The queries of a plan for deltas of these sizes, and the time of all of it."""
        rows: dict[int, float] = dict(enumerate(map(float, sizes)))
        queries = []
        seconds = 0.0
        for step in plan.steps:
            if isinstance(step, Take):
                rows[step.write] = 1.0
            elif isinstance(step, Query):
                estimate = self._query(step, rows)
                local = self.local_step_seconds + self.local_row_seconds * (
                    estimate.rows_sent + sum(rows[part.write] for part in step.parts)
                )
                seconds += estimate.seconds + (local if estimate.rows_sent else 0.0)
                queries.append(estimate)
            else:
                rows[step.write] = sum(rows[read] for read in step.reads)
        return PlanEstimate(tuple(queries), seconds)

    def _query(self, query: Query, rows: dict[int, float]) -> QueryEstimate:
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
        }

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> CostModel:
        return CostModel(
            cardinalities=tuple(document["cardinalities"]),
            attributes=tuple(document["attributes"]),
            costs={(edge, node): CostFunction(tuple(values)) for edge, node, values in document["costs"]},
            fanouts={(edge, node): value for edge, node, value in document["fanouts"]},
            recompute_seconds=document["recompute_seconds"],
            delay_seconds=document["delay_seconds"],
        )
