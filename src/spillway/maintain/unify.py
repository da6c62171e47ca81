"""Deltas of different shape as one wide delta, and the result split back into them (10.2.4).

The wide delta has the columns of all of its parts, NULL where a part has none, and the number of the part.
Parts are unified when they join the source by the same edges and in the same state, so one join serves all
of them. Of a wide delta only the values of its join columns travel to the source, each combination once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spillway.maintain.algebra import canonical, equal, fitting
from spillway.maintain.definition import ViewDefinition, wide
from spillway.maintain.delta import row_schema
from spillway.maintain.plan import Part, Query

PART = "part"
"""The column that tells the parts of a wide delta apart."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Values of some columns (by position) of the queried input; no columns: all rows are wanted."""

    columns: tuple[int, ...]
    keys: pa.Table


@dataclass(frozen=True, slots=True)
class WideDelta:
    """Parts of one query in one table."""

    parts: tuple[Part, ...]
    table: pa.Table


def unify(query: Query, slots: Mapping[int, pa.Table]) -> list[WideDelta]:
    """The wide deltas of a query: one for each state and set of edges; parts without rows are left out."""
    groups: dict[tuple[bool, tuple[int, ...]], list[Part]] = {}
    for part in query.parts:
        if slots[part.read].num_rows:
            groups.setdefault((part.before, part.edges), []).append(part)
    return [WideDelta(tuple(parts), _wide_table(parts, slots)) for parts in groups.values()]


def split(
    parts: Sequence[Part], result: pa.Table, columns: Mapping[int, Sequence[str]]
) -> dict[int, pa.Table]:
    """The rows of each part by the slot that it writes; `columns` are those of the slot."""
    if len(parts) == 1:
        return {parts[0].write: result.select(columns[parts[0].write])}
    number = result.column(PART)
    return {
        part.write: result.filter(pc.equal(number, place)).select(columns[part.write])
        for place, part in enumerate(parts)
    }


def _wide_table(parts: Sequence[Part], slots: Mapping[int, pa.Table]) -> pa.Table:
    tables = [
        slots[part.read].append_column(
            PART, pa.repeat(pa.scalar(place, pa.int32()), slots[part.read].num_rows)
        )
        for place, part in enumerate(parts)
    ]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")


def signature(definition: ViewDefinition, node: int, part: Part) -> tuple[int, ...]:
    """The columns of `node` by which the source evaluates `part`, each once, in order."""
    edges = (definition.graph.edges[number] for number in part.edges)
    return tuple(sorted({place for edge in edges for place in definition.edge_columns(edge, node)}))


def keys(definition: ViewDefinition, node: int, delta: WideDelta) -> pa.Table:
    """The join columns of a wide delta in the source's types; a value that does not fit matches nothing."""
    table, types = delta.table, row_schema(definition.inputs[node].columns)
    columns: dict[str, pa.ChunkedArray] = {}
    for number in delta.parts[0].edges:
        edge = definition.graph.edges[number]
        other = edge.other(node)
        ours = definition.edge_columns(edge, other)
        for place, own in zip(definition.edge_columns(edge, node), ours, strict=True):
            name = f"c{place}"
            value = canonical(fitting(table.column(wide(other, own)), types.field(name).type))
            # Two edges may ask the same column for two values: only equal ones can match.
            columns[name] = pc.if_else(equal(columns[name], value), value, None) if name in columns else value
    return pa.table({name: columns[name] for name in sorted(columns, key=lambda name: int(name[1:]))})
