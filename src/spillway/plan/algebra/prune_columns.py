"""Drops the columns that nothing above needs, down to the sources. The fields of the result stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from spillway.plan.algebra.columns import column, ids
from spillway.plan.algebra.relation import Computed, Field, Filter, InnerJoin, Project, Relation, UnionAll


def prune_columns(relation: Relation) -> Relation:
    """`relation` without columns that are not read."""
    return _pruned(relation, frozenset(field.id for field in relation.fields))


def _pruned(relation: Relation, needed: frozenset[int]) -> Relation:
    """`relation` with the needed fields, and perhaps others that its conditions read."""
    if isinstance(relation, Filter):
        below = _pruned(relation.input, needed | _read(relation.conjuncts))
        return replace(relation, input=below)
    if isinstance(relation, Project):
        items = tuple(item for item in relation.items if item.field.id in needed)
        return Project(_pruned(relation.input, _read(item.value for item in items)), items)
    if isinstance(relation, InnerJoin):
        below_all = needed | _read(relation.conjuncts)
        return replace(relation, inputs=tuple(_pruned(part, below_all) for part in relation.inputs))
    if isinstance(relation, UnionAll):
        return _pruned_union(relation, needed)
    return replace(relation, fields=tuple(field for field in relation.fields if field.id in needed))


def _pruned_union(union: UnionAll, needed: frozenset[int]) -> Relation:
    places = [place for place, field in enumerate(union.fields) if field.id in needed]
    inputs = tuple(_exactly(part, [part.fields[place] for place in places]) for part in union.inputs)
    return UnionAll(inputs, tuple(union.fields[place] for place in places))


def _exactly(branch: Relation, fields: list[Field]) -> Relation:
    """The branch of a union with these fields and no others."""
    pruned = _pruned(branch, frozenset(field.id for field in fields))
    if list(pruned.fields) == fields:
        return pruned
    return Project(pruned, tuple(Computed(field, column(field)) for field in fields))


def _read(nodes: Iterable[exp.Expr]) -> frozenset[int]:
    return frozenset(number for node in nodes for number in ids(node))
