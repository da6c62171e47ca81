"""SQL to relations: every SELECT, derived table, WITH query and UNION ALL of a statement.

Names end here. A WITH query is built once, and each use is a copy with fields of its own. Known limits:
only inner joins and UNION ALL are relations yet; every other clause is refused by name. What a query repeats
is repeated in the relations, so a query that reads more than `_MOST_SOURCES` sources is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Catalog, Column, normalise_type
from spillway.plan.algebra.columns import column, ids, rewritten
from spillway.plan.algebra.relation import (
    Computed,
    Field,
    Filter,
    InnerJoin,
    Project,
    Relation,
    SourceRows,
    UnionAll,
    sources,
)
from spillway.plan.algebra.rename import renamed
from spillway.plan.algebra.union_types import common_type
from spillway.plan.sql import (
    Input,
    Scope,
    conjuncts,
    display,
    label,
    open_scope,
    quote,
    range_of,
    read_items,
    read_source,
    refuse_other_statement,
    refuse_parts,
    refuse_select,
    refuse_table,
    resolve,
    set_operation,
    source_sql,
    unsupported,
)

TypeOf = Callable[[str, tuple[Column, ...]], str | None]
"""The Spark type of an expression over columns; None if only Spark can tell."""

_MOST_SOURCES = 200
_UNION_PARTS = ("this", "expression", "distinct")
_SUBQUERY_PARTS = ("this", "alias", "with_")
_WITH_PARTS = ("expressions",)
_CTE_PARTS = ("this", "alias")


@dataclass(frozen=True, slots=True)
class _Use:
    """An input of a SELECT: how its scope sees it, and its rows."""

    input: Input
    relation: Relation
    is_derived: bool


Queries = Mapping[str, Relation]
"""The WITH queries that can be read, by their names in lower case."""


def build(query: exp.Expr, catalog: Catalog, type_of: TypeOf) -> Relation:
    """The relation that the statement `query` asks for; what is not supported is refused."""
    relation = _Builder(catalog, type_of).query(query, {})
    _distinct_names(relation.fields, "the result")
    return relation


class _Builder:
    """Numbers the fields of one statement."""

    def __init__(self, catalog: Catalog, type_of: TypeOf) -> None:
        self._catalog = catalog
        self._type_of = type_of
        self._fields = 0
        self._sources = 0

    def query(self, node: exp.Expr, named: Queries) -> Relation:
        if node.args.get("with_") is not None:
            named = self._with(node.args["with_"], named)
        if isinstance(node, exp.Subquery):
            refuse_parts(node, _SUBQUERY_PARTS)
            relation = self.query(node.this, named)
            alias = node.args.get("alias")
            return relation if alias is None else self._called(alias, relation, node)
        if isinstance(node, exp.SetOperation):
            return self._union(node, named)
        refuse_other_statement(node)
        return self._select(node, named)

    def _with(self, node: exp.With, named: Queries) -> Queries:
        refuse_parts(node, _WITH_PARTS)
        known, own = dict(named), set[str]()
        for query in node.expressions:
            refuse_parts(query, _CTE_PARTS)
            name = query.alias.lower()
            if name in own:
                raise ViewError(f"two WITH queries are called {query.alias}; rename one of them")
            own.add(name)
            known[name] = self._called(query.args["alias"], self.query(query.this, known), query)
        return known

    def _union(self, node: exp.Expr, named: Queries) -> Relation:
        branches: list[Relation] = []
        while isinstance(node, exp.SetOperation):  # a long union is deep on its left side
            if not isinstance(node, exp.Union) or node.args.get("distinct"):
                raise unsupported(set_operation(node), node, "run one view per SELECT")
            refuse_parts(node, _UNION_PARTS if branches else (*_UNION_PARTS, "with_"))
            branches.append(self.query(node.expression, named))
            node = node.this
        branches.append(self.query(node, named))
        branches.reverse()
        widths = [len(branch.fields) for branch in branches]
        if len(set(widths)) > 1:
            raise ViewError(
                f"the sides of UNION ALL have {widths[0]} and {next(w for w in widths if w != widths[0])} "
                "columns; give them the same columns"
            )
        types = [_union_type(fields) for fields in zip(*(part.fields for part in branches), strict=True)]
        inputs = tuple(self._cast(branch, types) for branch in branches)
        fields = tuple(
            self._field(field.name, kind) for field, kind in zip(branches[0].fields, types, strict=True)
        )
        return UnionAll(inputs, fields)

    def _cast(self, branch: Relation, types: Sequence[str]) -> Relation:
        """The branch with the types of the union."""
        if all(field.type == kind for field, kind in zip(branch.fields, types, strict=True)):
            return branch
        values = [
            column(field) if field.type == kind else exp.cast(column(field), kind, dialect="spark")
            for field, kind in zip(branch.fields, types, strict=True)
        ]
        fields = [self._field(field.name, kind) for field, kind in zip(branch.fields, types, strict=True)]
        return Project(branch, tuple(map(Computed, fields, values)))

    def _select(self, select: exp.Expr, named: Queries) -> Relation:
        assert isinstance(select, exp.Select)
        refuse_select(select, ["with_"])
        uses: list[_Use] = []

        def read(node: exp.Expr) -> Input:
            uses.append(self._use(node, named, len(uses)))
            return uses[-1].input

        scope = open_scope(select, read)
        _check_windows(uses)
        conditions = list(scope.conditions)
        if (where := select.args.get("where")) is not None:
            conditions.append(where.this)
        nodes = tuple(
            _over_fields(node, scope, uses)
            for condition in conditions
            for node in conjuncts(resolve(condition, scope))
        )
        body: Relation
        if len(uses) > 1:
            body = InnerJoin(tuple(use.relation for use in uses), nodes)
        else:
            body = Filter(uses[0].relation, nodes) if nodes else uses[0].relation
        items = [item for node in select.expressions for item in read_items(node, scope)]
        return Project(
            body,
            tuple(self._computed(item.name, _over_fields(item.node, scope, uses), body) for item in items),
        )

    def _computed(self, name: str, value: exp.Expr, body: Relation) -> Computed:
        return Computed(self._field(name, self._type(value, body)), value)

    def _type(self, value: exp.Expr, body: Relation) -> str | None:
        if isinstance(value, exp.Null):
            return "void"
        if isinstance(value, exp.Cast):
            return _written_type(value)
        used = ids(value)
        read = [field for field in body.fields if field.id in used]
        if isinstance(value, exp.Column):
            return read[0].type
        columns = tuple(Column(str(field.id), field.type) for field in read if field.type is not None)
        return self._type_of(source_sql(value), columns) if len(columns) == len(read) else None

    def _use(self, node: exp.Expr, named: Queries, number: int) -> _Use:
        """One part of FROM."""
        if isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table):
                raise unsupported("a join in parentheses", node, "write the joins one after the other")
            alias = node.alias or f"subquery{number + 1}"
            return self._derived(alias, self.query(node, named))
        table = refuse_table(node)
        if len(table.parts) == 1 and table.name.lower() in named:
            if range_of(table) is not None:
                raise ViewError(
                    f"{table.name} is a WITH query and has no window; write [RANGE ...] after a source in it"
                )
            relation = named[table.name.lower()]
            self._count(sources(relation))
            return self._derived(table.alias or table.name, renamed(relation, self._copied))
        input_ = read_source(table, self._catalog)
        fields = tuple(self._field(column.name, column.type) for column in input_.columns)
        self._count(1)
        return _Use(input_, SourceRows(input_.source, input_.alias, fields, input_.range_us), False)

    def _derived(self, alias: str, relation: Relation) -> _Use:
        _distinct_names(relation.fields, alias)
        columns = tuple(Column(field.name, field.type or "") for field in relation.fields)
        return _Use(Input(alias, alias, columns), relation, True)

    def _called(self, alias: exp.Expr, relation: Relation, node: exp.Expr) -> Relation:
        """The relation with the names of a column list: `v (a, b)`."""
        names = [name.name for name in alias.args.get("columns") or ()]
        if not names:
            return relation
        if len(names) != len(relation.fields):
            raise ViewError(
                f"{alias.name} names {len(names)} columns, but its query has {len(relation.fields)}: "
                f"{quote(node)}"
            )
        return Project(
            relation,
            tuple(
                Computed(self._field(name, field.type), column(field))
                for name, field in zip(names, relation.fields, strict=True)
            ),
        )

    def _field(self, name: str, kind: str | None) -> Field:
        self._fields += 1
        return Field(self._fields, name, kind)

    def _copied(self, field: Field) -> Field:
        return self._field(field.name, field.type)

    def _count(self, more: int) -> None:
        self._sources += more
        if self._sources > _MOST_SOURCES:
            raise ViewError(
                f"the view reads more than {_MOST_SOURCES} sources, each use of a WITH query counted; "
                "divide it into several views"
            )


def _written_type(cast: exp.Cast) -> str | None:
    """The type that a cast names; None for a type that only Spark knows."""
    try:
        return normalise_type(display(label(cast.args["to"])))
    except ViewError:
        return None


def _over_fields(node: exp.Expr, scope: Scope, uses: Sequence[_Use]) -> exp.Expr:
    """A resolved node with fields in place of names."""

    def field(part: exp.Column) -> exp.Expr:
        number = scope.position(part.table)
        assert number is not None
        return column(next(f for f in uses[number].relation.fields if f.name == part.name))

    return rewritten(node, field)


def _check_windows(uses: Sequence[_Use]) -> None:
    """A window speaks of the rows of one join, so the event time of every input must be at hand."""
    windowed = next((use.input for use in uses if use.input.range_us is not None), None)
    derived = next((use.input for use in uses if use.is_derived), None)
    if windowed is None:
        return
    if len(uses) == 1:
        raise ViewError(
            f"the window of {windowed.alias} needs a join; "
            f"write [RANGE ...] where {windowed.source} is joined"
        )
    if derived is not None:
        raise ViewError(
            f"{windowed.alias} has a window, but {derived.alias}, which is joined with it, is not a source: "
            "join sources only, with their conditions in WHERE"
        )


def _distinct_names(fields: Sequence[Field], owner: str) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise ViewError(f"two columns of {owner} are called {field.name}; alias one of them")
        seen.add(field.name.lower())


def _union_type(fields: Sequence[Field]) -> str:
    """The type of one column of a union."""
    name, kind = fields[0].name, fields[0].type
    for field in fields[1:]:
        wider = None if kind is None or field.type is None else common_type(kind, field.type)
        if wider is None:
            types = [found or "of a type that only Spark knows" for found in (kind, field.type)]
            raise ViewError(
                f"column {name} of UNION ALL is {types[0]} on one side and {types[1]} on another; "
                "write CAST(... AS type) on both sides"
            )
        kind = wider
    assert kind is not None
    return kind
