"""A query as a tree of relational operators: what is computed, not how.

Every relation has fields; a field's id is unique in the whole query, so a rule can move an expression without
asking what its names mean where it comes to be. An expression is a node of sqlglot in which every column is a
field (`columns.py`); nodes are shared between relations and never changed. Rows are bags, as in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a relation. `name` is for readers; `type` is Spark's, or None if only Spark can tell."""

    id: int
    name: str
    type: str | None


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The rows of a source, which the query calls `alias`; `range_us` is its window, if it has one."""

    source: str
    alias: str
    fields: tuple[Field, ...]
    range_us: int | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which all conjuncts are true. They are tested in order: one may guard those after it."""

    input: Relation
    conjuncts: tuple[exp.Expr, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Computed:
    """A field and the expression that gives its value."""

    field: Field
    value: exp.Expr


@dataclass(frozen=True, slots=True)
class Project:
    """A row of computed values for each row of the input."""

    input: Relation
    items: tuple[Computed, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.items)


@dataclass(frozen=True, slots=True)
class InnerJoin:
    """All combinations of a row of each input for which all conjuncts are true; see `Filter` for order."""

    inputs: tuple[Relation, ...]
    conjuncts: tuple[exp.Expr, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for part in self.inputs for field in part.fields)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all inputs. The n-th field is the n-th field of each input, and all have its type."""

    inputs: tuple[Relation, ...]
    fields: tuple[Field, ...]


Relation = SourceRows | Filter | Project | InnerJoin | UnionAll


def has_windows(relation: Relation) -> bool:
    """Whether a window limits which rows of a join meet: such a join cannot take part in a larger one."""
    if isinstance(relation, InnerJoin):
        return any(has_windows(part) for part in relation.inputs)
    if isinstance(relation, Filter):
        return has_windows(relation.input)
    return isinstance(relation, SourceRows) and relation.range_us is not None


def sources(relation: Relation) -> int:
    """How many times sources are read."""
    if isinstance(relation, InnerJoin | UnionAll):
        return sum(sources(part) for part in relation.inputs)
    return 1 if isinstance(relation, SourceRows) else sources(relation.input)
