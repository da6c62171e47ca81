"""The parts of a view over stored relations: what is read of each relation, key classes, residual predicates.

Every value that is needed after a relation's own filters becomes a column whose name is unique in the view,
so that joins in any order never meet two columns of the same name. Equalities form a class only if all their
columns have the same type: comparing across types is not transitive. Known limit: windows and statistics
belong to running views and are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from spillway.compute.join_graph import mask_of
from spillway.errors import ViewError
from spillway.model import Catalog, View
from spillway.plan.rules import equality_classes
from spillway.plan.sql import (
    Equality,
    KeyTerm,
    Scope,
    conjunction,
    dependencies,
    label,
    parse_view,
    read_predicates,
    read_scope,
    read_select_list,
    source_sql,
)


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A value of one relation: its name in the view's joins, and Spark SQL over the source's columns."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class ReadRelation:
    alias: str
    source: str
    filter: str | None
    columns: tuple[ReadColumn, ...]


@dataclass(frozen=True, slots=True)
class ViewKey:
    """A key class: for each member relation the name of its column."""

    members: tuple[tuple[int, str], ...]
    label: str

    def column(self, relation: int) -> str:
        return next(name for member, name in self.members if member == relation)


@dataclass(frozen=True, slots=True)
class ResidualPredicate:
    """A condition over several relations, in Spark SQL over the columns' names."""

    mask: int
    condition: str


@dataclass(frozen=True, slots=True)
class ComputeView:
    relations: tuple[ReadRelation, ...]
    keys: tuple[ViewKey, ...]
    residual: tuple[ResidualPredicate, ...]
    outputs: tuple[tuple[str, str], ...]
    """Name and Spark SQL of each result column."""
    text: str
    equalities: tuple[str, ...] = ()
    """The equalities of two relations as they were written, in Spark SQL over the columns' names."""

    def names(self, relation: int) -> tuple[str, ...]:
        return tuple(column.name for column in self.relations[relation].columns)

    def named(self, text: str) -> str:
        """A text of Spark about the joined rows, with columns as the user knows them."""
        labels = {
            column.name: f"{relation.alias}.{plain}"
            if plain.isidentifier()
            else f"[{relation.alias}: {plain}]"
            for relation in self.relations
            for column in relation.columns
            for plain in [column.expression.replace("`", "")]
        }
        return re.sub(r"\br\d+_\d+\b", lambda found: labels.get(found[0], found[0]), text)


class _Columns:
    """Collects what is read of each relation; equal expressions are read once."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._found: list[dict[str, ReadColumn]] = [{} for _ in scope.inputs]

    def add(self, input_index: int, node: exp.Expr) -> str:
        known = self._found[input_index]
        expression = source_sql(node)
        if expression not in known:
            known[expression] = ReadColumn(f"r{input_index}_{len(known)}", expression)
        return known[expression].name

    def of(self, input_index: int) -> tuple[ReadColumn, ...]:
        return tuple(self._found[input_index].values())

    def rewrite(self, node: exp.Expr) -> str:
        """`node` over the joined rows: every source column by its name there."""
        holder = exp.Paren(this=node.copy())
        for column in list(holder.find_all(exp.Column)):
            index = self._scope.position(column.table)
            assert index is not None
            column.replace(exp.column(self.add(index, column), quoted=True))
        return source_sql(holder.this)


def read_view(view: View, catalog: Catalog) -> ComputeView:
    """The parts of `view` over the sources of `catalog`; a view that cannot be computed is refused."""
    select = parse_view(view)
    scope = read_scope(select, catalog)
    for relation in scope.inputs:
        if relation.range_us is not None:
            raise ViewError(
                f"{relation.alias} has a window [RANGE]; a view over stored relations cannot have one"
            )
    items = read_select_list(select, scope)
    if not items:
        raise ViewError("the view selects nothing; name at least one column")
    predicates = read_predicates(select, scope)
    columns = _Columns(scope)
    filters = list(predicates.filters)
    keys: list[ViewKey] = []
    for members in _same_type_classes(predicates.equalities, scope):
        key, own = _key(members, columns)
        keys.append(key)
        filters += own
    residual = tuple(
        ResidualPredicate(mask_of(list(dependencies(node, scope))), columns.rewrite(node))
        for node in {label(node): node for node in predicates.residual}.values()
    )
    outputs = tuple((item.name, columns.rewrite(item.node)) for item in items)
    equalities = tuple(
        " = ".join(columns.add(term.input, term.node) for term in (equality.left, equality.right))
        for equality in predicates.equalities
    )
    relations = tuple(
        ReadRelation(relation.alias, relation.source, _filter(index, filters), columns.of(index))
        for index, relation in enumerate(scope.inputs)
    )
    return ComputeView(relations, tuple(keys), residual, outputs, " ".join(view.text.split()), equalities)


def _key(members: list[Equality], columns: _Columns) -> tuple[ViewKey, list[KeyTerm]]:
    """A class as a key, and the filters that follow from it: columns of one relation that must be equal."""
    first: dict[int, KeyTerm] = {}
    own: list[KeyTerm] = []
    for term in (side for equality in members for side in (equality.left, equality.right)):
        known = first.setdefault(term.input, term)
        if label(known.node) != label(term.node):
            own.append(KeyTerm(term.input, exp.EQ(this=known.node.copy(), expression=term.node.copy())))
    named = tuple((index, columns.add(index, first[index].node)) for index in sorted(first))
    text = " = ".join(label(first[index].node) for index in sorted(first))
    return ViewKey(named, text), own


def _same_type_classes(equalities: tuple[Equality, ...], scope: Scope) -> list[list[Equality]]:
    alike: list[Equality] = []
    unlike: dict[str, list[Equality]] = {}
    for equality in equalities:
        if _type(equality.left, scope) == _type(equality.right, scope) is not None:
            alike.append(equality)
        else:
            unlike[label(equality.node)] = [equality]
    return equality_classes(tuple(alike)) + list(unlike.values())


def _type(term: KeyTerm, scope: Scope) -> str | None:
    if not isinstance(term.node, exp.Column):
        return None
    column = scope.inputs[term.input].find(term.node.name)
    return None if column is None else column.type


def _filter(index: int, filters: list[KeyTerm]) -> str | None:
    own = {label(term.node): term.node for term in filters if term.input == index}
    return source_sql(conjunction(list(own.values()))) if own else None
