"""Makes one join of joins on joins, and moves projections above joins and filters.

Afterwards the input of a join is a source or a union, perhaps filtered, and a query without a union is one
projection over one join. Invariant: conditions from further inside come first, because they may guard those
from further outside. A join with windows stays as it is: its windows speak of the rows of its own inputs.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spillway.plan.algebra.columns import column, substituted
from spillway.plan.algebra.relation import (
    Computed,
    Filter,
    InnerJoin,
    Project,
    Relation,
    UnionAll,
    has_windows,
)


def flatten_joins(relation: Relation) -> Relation:
    """`relation` with as few joins and projections as its unions allow."""
    if isinstance(relation, Filter):
        return _filtered(flatten_joins(relation.input), relation.conjuncts)
    if isinstance(relation, Project):
        return _projected(flatten_joins(relation.input), relation.items)
    if isinstance(relation, InnerJoin):
        return _joined(relation)
    if isinstance(relation, UnionAll):
        return replace(relation, inputs=tuple(map(flatten_joins, relation.inputs)))
    return relation


def _filtered(below: Relation, nodes: tuple[exp.Expr, ...]) -> Relation:
    if isinstance(below, Project):
        own = tuple(substituted(node, _values(below)) for node in nodes)
        return Project(_filtered(below.input, own), below.items)
    if isinstance(below, Filter | InnerJoin):
        return replace(below, conjuncts=below.conjuncts + nodes)
    return Filter(below, nodes)


def _projected(below: Relation, items: tuple[Computed, ...]) -> Relation:
    if not isinstance(below, Project):
        return Project(below, items)
    values = _values(below)
    own = tuple(Computed(item.field, substituted(item.value, values)) for item in items)
    return Project(below.input, own)


def _joined(join: InnerJoin) -> Relation:
    inputs: list[Relation] = []
    inside: list[exp.Expr] = []
    values: dict[int, exp.Expr] = {}
    for below in map(flatten_joins, join.inputs):
        if isinstance(below, Project):
            values |= _values(below)
            below = below.input
        if isinstance(below, InnerJoin) and not has_windows(below):
            inputs += below.inputs
            inside += below.conjuncts
        else:
            inputs.append(below)
    outside = (substituted(node, values) for node in join.conjuncts)
    flat = InnerJoin(tuple(inputs), (*inside, *outside))
    if not values:
        return flat
    fields = join.fields
    return Project(flat, tuple(Computed(field, values.get(field.id, column(field))) for field in fields))


def _values(project: Project) -> dict[int, exp.Expr]:
    return {item.field.id: item.value for item in project.items}
