"""Takes out of an OR what all of its sides ask for: `(k = j AND p) OR (k = j AND q)` is `k = j AND (p OR q)`.

So a join condition that is repeated on every side becomes a key. Invariant: three-valued logic keeps both
forms equal. What may fail stays in its side, behind the conditions that guard it there.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spillway.plan.algebra.columns import may_fail
from spillway.plan.algebra.relation import Filter, InnerJoin, Project, Relation, UnionAll
from spillway.plan.sql import conjunction, conjuncts, without_parentheses


def common_conjuncts(relation: Relation) -> Relation:
    """`relation` with common conjuncts taken out of every condition."""
    if isinstance(relation, Filter):
        return Filter(common_conjuncts(relation.input), _all(relation.conjuncts))
    if isinstance(relation, Project):
        return replace(relation, input=common_conjuncts(relation.input))
    if isinstance(relation, InnerJoin):
        return InnerJoin(tuple(map(common_conjuncts, relation.inputs)), _all(relation.conjuncts))
    if isinstance(relation, UnionAll):
        return replace(relation, inputs=tuple(map(common_conjuncts, relation.inputs)))
    return relation


def disjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The sides of a disjunction, left to right."""
    node = without_parentheses(node)
    return disjuncts(node.this) + disjuncts(node.expression) if isinstance(node, exp.Or) else [node]


def disjunction(nodes: list[exp.Expr]) -> exp.Expr:
    """Any of `nodes`, in their order."""
    result = nodes[0].copy()
    for node in nodes[1:]:
        result = exp.Or(this=result, expression=node.copy())
    return result


def _all(nodes: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
    return tuple(part for node in nodes for part in _taken_out(node))


def _taken_out(node: exp.Expr) -> list[exp.Expr]:
    first, *others = [conjuncts(side) for side in disjuncts(node)]
    common = [
        part
        for number, part in enumerate(first)
        if others and part not in first[:number] and not may_fail(part) and all(part in o for o in others)
    ]
    if not common:
        return [node]
    rest = [[part for part in side if part not in common] for side in (first, *others)]
    if not all(rest):  # a side asks for nothing more
        return common
    return [*common, disjunction([conjunction(side) for side in rest])]
