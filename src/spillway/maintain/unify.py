"""Deltas of different shape in one query, and its answer split back into them (10.2.4).

Parts that join the source by the same edges and in the same state are unified. Of a delta only the values of
its join columns travel, so the wide table of the dissertation, with NULL where a part has no column, comes
down to the key columns that all parts have; each combination travels once. The answer is split by joining it
with each part: no part carries columns of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spillway.maintain.algebra import canonical, equal, fitting
from spillway.maintain.definition import ViewDefinition, wide
from spillway.maintain.delta import row_schema
from spillway.maintain.plan import MaintenanceQuery, Part


@dataclass(frozen=True, slots=True)
class KeySet:
    """Values of some columns (by position) of the queried input; no columns: all rows are wanted."""

    columns: tuple[int, ...]
    keys: pa.Table


def unify(query: MaintenanceQuery, slots: Mapping[int, pa.Table]) -> list[tuple[Part, ...]]:
    """The parts of a query that are answered together; parts without rows are left out."""
    groups: dict[tuple[bool, tuple[int, ...]], list[Part]] = {}
    for part in query.parts:
        if slots[part.read].num_rows:
            groups.setdefault((part.before, part.edges), []).append(part)
    return [tuple(parts) for parts in groups.values()]


def signature(definition: ViewDefinition, node: int, part: Part) -> tuple[int, ...]:
    """The columns of `node` by which the source evaluates `part`, each once, in order."""
    edges = (definition.graph.edges[number] for number in part.edges)
    return tuple(sorted({place for edge in edges for place in definition.edge_columns(edge, node)}))


def keys(
    definition: ViewDefinition, node: int, parts: Sequence[Part], slots: Mapping[int, pa.Table]
) -> pa.Table:
    """The join columns of unified parts in the source's types; a value that does not fit matches nothing."""
    return pa.concat_tables([_keys(definition, node, part, slots[part.read]) for part in parts])


def _keys(definition: ViewDefinition, node: int, part: Part, delta: pa.Table) -> pa.Table:
    types = row_schema(definition.inputs[node].columns)
    columns: dict[str, pa.ChunkedArray] = {}
    for number in part.edges:
        edge = definition.graph.edges[number]
        other = edge.other(node)
        ours = definition.edge_columns(edge, other)
        for place, own in zip(definition.edge_columns(edge, node), ours, strict=True):
            name = f"c{place}"
            value = canonical(fitting(delta.column(wide(other, own)), types.field(name).type))
            # Two edges may ask the same column for two values: only equal ones can match.
            columns[name] = pc.if_else(equal(columns[name], value), value, None) if name in columns else value
    return pa.table({name: columns[name] for name in sorted(columns, key=lambda name: int(name[1:]))})
