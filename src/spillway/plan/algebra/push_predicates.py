"""Moves conditions down: through projections, into every branch of a union, to the input of a join they read.

An OR over several inputs stays, and each input gets the weaker OR that follows from it. Invariant: what may
fail moves to an input of a join only with all the conditions before it, because any of them may be its guard;
so it is never tested on a row that they would have dropped.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spillway.plan.algebra.columns import column, ids, may_fail, substituted
from spillway.plan.algebra.common_conjuncts import disjunction, disjuncts
from spillway.plan.algebra.relation import Filter, InnerJoin, Project, Relation, UnionAll
from spillway.plan.sql import conjunction, conjuncts

Nodes = tuple[exp.Expr, ...]


def push_predicates(relation: Relation) -> Relation:
    """`relation` with every condition as far down as it may go."""
    return _pushed(relation, ())


def _pushed(relation: Relation, nodes: Nodes) -> Relation:
    """`relation` filtered by `nodes`."""
    if isinstance(relation, Filter):
        return _pushed(relation.input, relation.conjuncts + nodes)
    if isinstance(relation, Project):
        values = {item.field.id: item.value for item in relation.items}
        own = tuple(substituted(node, values) for node in nodes)
        return Project(_pushed(relation.input, own), relation.items)
    if isinstance(relation, UnionAll):
        return replace(relation, inputs=tuple(_into(relation, branch, nodes) for branch in relation.inputs))
    if isinstance(relation, InnerJoin):
        return _into_join(relation, relation.conjuncts + nodes)
    return Filter(relation, nodes) if nodes else relation


def _into(union: UnionAll, branch: Relation, nodes: Nodes) -> Relation:
    values = {own.id: column(field) for own, field in zip(union.fields, branch.fields, strict=True)}
    return _pushed(branch, tuple(substituted(node, values) for node in nodes))


def _into_join(join: InnerJoin, nodes: Nodes) -> Relation:
    fields = [frozenset(field.id for field in part.fields) for part in join.inputs]
    moved: list[list[exp.Expr]] = [[] for _ in join.inputs]
    kept: list[exp.Expr] = []
    for number, node in enumerate(nodes):
        used = ids(node)
        target = next((place for place, own in enumerate(fields) if used <= own), None)
        if target is not None and (not may_fail(node) or len(moved[target]) == number):
            moved[target].append(node)
            continue
        kept.append(node)
        for place, own in enumerate(fields):
            weaker = _implied(node, own)
            if weaker is not None:
                moved[place].append(weaker)
    inputs = [_pushed(part, tuple(own)) for part, own in zip(join.inputs, moved, strict=True)]
    return InnerJoin(tuple(inputs), tuple(kept))


def _implied(node: exp.Expr, fields: frozenset[int]) -> exp.Expr | None:
    """What an OR asks of these fields alone; None if one of its sides asks nothing of them."""
    sides = [
        [part for part in conjuncts(side) if ids(part) and ids(part) <= fields and not may_fail(part)]
        for side in disjuncts(node)
    ]
    if len(sides) < 2 or not all(sides):
        return None
    return disjunction([conjunction(side) for side in sides])
