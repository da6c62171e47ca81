"""Learns the cost functions of a view by sample queries along every edge, in both directions (11.3.1).

Keys are rows of the input at the other end of the edge, so the fan-out is measured with the time. Sizes
spread over three orders of magnitude; a slow source is asked each of them once, a fast one twice.
"""

from __future__ import annotations

import json
from typing import Protocol

import pyarrow as pa

from spillway.maintain.definition import ViewDefinition, wide
from spillway.maintain.delta import row_schema
from spillway.maintain.query_cost import Direction, QueryCost
from spillway.maintain.regression import CostFunction, CostSample, fit
from spillway.maintain.unify import KeySet
from spillway.maintain.view_store import ViewStore

SIZES = (10, 50, 250, 1000, 4000)
_FAST_SECONDS = 0.05
_NOTE = "cost model"


class Sampled(Protocol):
    """What calibration needs of a view manager."""

    def samples(self) -> list[pa.Table]:
        """Some rows of every input, in wide columns."""

    def cardinalities(self) -> tuple[int, ...]: ...

    def recompute_seconds(self) -> float: ...

    def timed_query(self, node: int, keys: KeySet) -> tuple[int, float]:
        """Rows received and seconds."""


def learned_costs(definition: ViewDefinition, store: ViewStore, manager: Sampled) -> QueryCost:
    """The costs noted in the store; if there are none, measure them by sample queries and note them."""
    noted = store.note(_NOTE)
    if noted is not None:
        return QueryCost.of_document(json.loads(noted))
    costs = calibrate(definition, manager)
    save_costs(store, costs)
    return costs


def save_costs(store: ViewStore, costs: QueryCost) -> None:
    store.save_note(_NOTE, json.dumps(costs.document()))


def calibrate(definition: ViewDefinition, manager: Sampled) -> QueryCost:
    """The costs of a view's queries, measured now."""
    samples = manager.samples()
    costs: dict[Direction, CostFunction] = {}
    fanouts: dict[Direction, float] = {}
    for number, edge in enumerate(definition.graph.edges):
        for node in (edge.left, edge.right):
            other = edge.other(node)
            theirs = definition.edge_columns(edge, node)
            ours = definition.edge_columns(edge, other)
            columns = [wide(other, place) for place in ours]
            keys = samples[other].select(columns).rename_columns([f"c{place}" for place in theirs])
            target = row_schema(definition.inputs[node].columns)
            keys = keys.cast(pa.schema([target.field(name) for name in keys.column_names]), safe=False)
            costs[number, node], fanouts[number, node] = _learn(manager, node, theirs, keys)
    return QueryCost(
        cardinalities=manager.cardinalities(),
        attributes=tuple(len(view_input.columns) for view_input in definition.inputs),
        costs=costs,
        fanouts=fanouts,
        recompute_seconds=manager.recompute_seconds(),
    )


def _learn(
    manager: Sampled, node: int, theirs: tuple[int, ...], keys: pa.Table
) -> tuple[CostFunction, float]:
    order = sorted(set(theirs))
    names = [f"c{place}" for place in order]
    keys = keys.select(names).drop_null()
    total, observed, matched = keys.num_rows, list[CostSample](), (0, 0)
    sizes = sorted({min(size, total) for size in SIZES if total})
    for size in sizes:
        asked = keys.slice(0, size).group_by(names).aggregate([])
        if not asked.num_rows:
            continue
        key_set = KeySet(tuple(order), asked)
        received, seconds = manager.timed_query(node, key_set)
        if seconds < _FAST_SECONDS:
            seconds = min(seconds, manager.timed_query(node, key_set)[1])
        observed.append(CostSample(asked.num_rows, 1, seconds))
        matched = (matched[0] + received, matched[1] + asked.num_rows)
    if not observed:
        return CostFunction((0.001, *(0.0,) * 6)), 1.0
    return fit(observed), matched[0] / matched[1]
