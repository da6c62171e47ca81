"""A view as maintenance sees it: the view graph, what each input contributes, what is done to joined rows.

Columns have short names by position: `c3` is the fourth column that the view reads of an input, `c1_3` that
column in rows that join several inputs. Conditions and result columns are DuckDB SQL over these names, made
only of parts that mean the same everywhere; anything else is refused. Known limits: join conditions compare
columns; functions are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import ViewError
from spillway.maintain.aggregation import Aggregation, is_aggregated, read_aggregation
from spillway.maintain.graph import Edge, ViewGraph
from spillway.model import Catalog, Column, View
from spillway.plan.expression import arrow_type
from spillway.plan.sql import (
    Equality,
    Predicates,
    Scope,
    SelectItem,
    conjunction,
    label,
    parse_view,
    quote,
    read_predicates,
    read_scope,
    read_select_list,
)

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KEY_TYPES = frozenset({*_INTEGERS, "double", "string", "boolean", "date", "timestamp", "timestamp_ntz"})
_PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not,
    exp.Is, exp.In, exp.Between, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ,
    exp.Add, exp.Sub, exp.Mul, exp.Neg,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class InputDefinition:
    """One use of a source; `filter` is what must hold on it alone, over `c0`, `c1`, ..."""

    alias: str
    source: str
    columns: tuple[Column, ...]
    filter: str | None = None

    def position(self, name: str) -> int:
        return next(place for place, column in enumerate(self.columns) if column.name == name)


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """A result column: its name, and its SQL over `c0_0`, `c0_1`, ..."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """All that maintaining a view needs to know of its text."""

    text: str
    inputs: tuple[InputDefinition, ...]
    graph: ViewGraph
    residual: str | None
    outputs: tuple[OutputDefinition, ...]
    """The columns of the join that are stored."""
    aggregation: Aggregation | None = None

    @property
    def fingerprint(self) -> str:
        """Changes when the stored rows would: then the view must be loaded again."""
        return hashlib.sha256(
            repr((self.inputs, self.graph, self.residual, self.outputs)).encode()
            + (b"" if self.aggregation is None else repr(self.aggregation).encode())
        ).hexdigest()

    def wide_columns(self, nodes: Iterable[int]) -> list[str]:
        return [wide(node, place) for node in nodes for place in range(len(self.inputs[node].columns))]

    def edge_columns(self, edge: Edge, node: int) -> tuple[int, ...]:
        """The positions of the columns of `node` in an edge."""
        return tuple(self.inputs[node].position(name) for name in edge.columns(node))


def wide(node: int, place: int) -> str:
    """The name of a column in joined rows."""
    return f"c{node}_{place}"


def define_view(view: View, catalog: Catalog) -> ViewDefinition:
    """The definition of `view` over the sources of `catalog`; a view that cannot be maintained is refused."""
    select = parse_view(view, grouped=True)
    scope = read_scope(select, catalog)
    if any(view_input.range_us is not None for view_input in scope.inputs):
        raise ViewError(
            "a maintained view has no windows: remove [RANGE ...]; rows leave when they are deleted"
        )
    aggregation, items = (
        read_aggregation(select, scope) if is_aggregated(select) else (None, read_select_list(select, scope))
    )
    predicates = read_predicates(select, scope)
    for node in _expressions(items, predicates):
        _check_plain(node)
    aliases = tuple(view_input.alias for view_input in scope.inputs)
    graph = ViewGraph(aliases, _edges(predicates.equalities, scope))
    if not graph.connected():
        raise ViewError(
            "the view needs an equi-join between all of its inputs: add a condition a.key = b.key"
        )
    columns = _used_columns(_expressions(items, predicates), scope)
    inputs = tuple(
        InputDefinition(
            view_input.alias, view_input.source, columns[place], _filter(place, predicates, scope, columns)
        )
        for place, view_input in enumerate(scope.inputs)
    )
    residual = conjunction(list(predicates.residual)) if predicates.residual else None
    return ViewDefinition(
        text=" ".join(view.text.split()),
        inputs=inputs,
        graph=graph,
        residual=_sql(residual, scope, columns) if residual is not None else None,
        outputs=tuple(OutputDefinition(item.name, _sql(item.node, scope, columns)) for item in items),
        aggregation=aggregation,
    )


def _expressions(items: Sequence[SelectItem], predicates: Predicates) -> list[exp.Expr]:
    return [
        *(item.node for item in items),
        *(term.node for term in predicates.filters),
        *(equality.node for equality in predicates.equalities),
        *predicates.residual,
    ]


def _check_plain(node: exp.Expr) -> None:
    for part in node.walk():
        if not isinstance(part, _PLAIN):
            raise ViewError(
                f"{quote(part)} is not supported in a maintained view yet; "
                "use columns, constants, comparisons, AND, OR, NOT and + - *"
            )


def _edges(equalities: Iterable[Equality], scope: Scope) -> tuple[Edge, ...]:
    """One edge per pair of inputs that equalities join."""
    pairs: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for equality in equalities:
        sides = sorted((equality.left, equality.right), key=lambda side: side.input)
        for side in sides:
            if not isinstance(side.node, exp.Column):
                raise ViewError(f"a maintained view joins on columns, not on {quote(side.node)}")
        types = [_column(side.node, scope).type for side in sides]
        if not (types[0] == types[1] or all(kind in _INTEGERS for kind in types)):
            raise ViewError(
                f"{label(equality.node)} compares {types[0]} and {types[1]}; "
                "make their types equal in the sources"
            )
        if not all(kind in _KEY_TYPES or kind.startswith("decimal") for kind in types):
            raise ViewError(
                f"{label(equality.node)}: a maintained view cannot join on {types[0]}; cast both sides, to "
                "string for example, or join on another column"
            )
        pair = (sides[0].node.name, sides[1].node.name)
        known = pairs.setdefault((sides[0].input, sides[1].input), [])
        if pair not in known:
            known.append(pair)
    return tuple(Edge(left, right, tuple(columns)) for (left, right), columns in pairs.items())


def _used_columns(nodes: Iterable[exp.Expr], scope: Scope) -> tuple[tuple[Column, ...], ...]:
    """What the view reads of each input, in the source's order."""
    used = {
        (scope.position(column.table), column.name) for node in nodes for column in node.find_all(exp.Column)
    }
    found = tuple(
        tuple(column for column in view_input.columns if (place, column.name) in used)
        for place, view_input in enumerate(scope.inputs)
    )
    for view_input, columns in zip(scope.inputs, found, strict=True):
        for column in columns:
            if arrow_type(column.type) is None:
                name = f"{view_input.alias}.{column.name}"
                raise ViewError(
                    f"{name} is {column.type}, which a maintained view cannot carry; "
                    "leave it out of the view, or cast it in a view of the source"
                )
    return found


def _filter(
    place: int, predicates: Predicates, scope: Scope, columns: tuple[tuple[Column, ...], ...]
) -> str | None:
    own = [term.node for term in predicates.filters if term.input == place]
    return _sql(conjunction(own), scope, columns, alone=True) if own else None


def _sql(
    node: exp.Expr, scope: Scope, columns: tuple[tuple[Column, ...], ...], *, alone: bool = False
) -> str:
    root = exp.Paren(this=node.copy())
    for column in list(root.find_all(exp.Column)):
        input_ = scope.position(column.table)
        assert input_ is not None
        place = next(p for p, known in enumerate(columns[input_]) if known.name == column.name)
        column.replace(exp.column(f"c{place}" if alone else wide(input_, place)))
    return str(root.this.sql(dialect="duckdb"))


def _column(node: exp.Expr, scope: Scope) -> Column:
    place = scope.position(node.table) if isinstance(node, exp.Column) else None
    found = scope.inputs[place].find(node.name) if place is not None else None
    assert found is not None
    return found
