"""The same relation with fields of its own, for one more use of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from spillway.plan.algebra.columns import column, substituted
from spillway.plan.algebra.relation import Computed, Field, Filter, InnerJoin, Project, Relation, UnionAll


def renamed(relation: Relation, fresh: Callable[[Field], Field]) -> Relation:
    """`relation` with a `fresh` field in place of each."""
    return _Renaming(fresh).relation(relation)


class _Renaming:
    """Fields of the copy by the ids of the original, while it is made from the sources up."""

    def __init__(self, fresh: Callable[[Field], Field]) -> None:
        self._fresh = fresh
        self._values: dict[int, exp.Expr] = {}

    def relation(self, relation: Relation) -> Relation:
        if isinstance(relation, Filter):
            return Filter(self.relation(relation.input), self._nodes(relation.conjuncts))
        if isinstance(relation, Project):
            below = self.relation(relation.input)
            values = self._nodes(tuple(item.value for item in relation.items))
            fields = self._fields(relation.fields)
            return Project(below, tuple(map(Computed, fields, values)))
        if isinstance(relation, InnerJoin):
            inputs = tuple(self.relation(part) for part in relation.inputs)
            return InnerJoin(inputs, self._nodes(relation.conjuncts))
        if isinstance(relation, UnionAll):
            inputs = tuple(self.relation(part) for part in relation.inputs)
            return UnionAll(inputs, self._fields(relation.fields))
        return replace(relation, fields=self._fields(relation.fields))

    def _fields(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        made = tuple(self._fresh(field) for field in fields)
        self._values |= {old.id: column(new) for old, new in zip(fields, made, strict=True)}
        return made

    def _nodes(self, nodes: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
        return tuple(substituted(node, self._values) for node in nodes)
