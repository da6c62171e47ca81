"""The inputs of a view, and which column each name means (case is ignored, as in Spark).

Invariant: `visible` lists what an unqualified name or `*` can mean, in output order; `USING` hides the
right-hand copy of its columns, and the condition it stands for is in `conditions` beside those of `ON`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Catalog, Column
from spillway.plan.sql.refusals import refuse_join, refuse_table
from spillway.plan.sql.render import quote
from spillway.plan.sql.window_clause import range_of


@dataclass(frozen=True, slots=True)
class Input:
    """One use of a source in FROM; a source may be used twice under two aliases."""

    alias: str
    source: str
    columns: tuple[Column, ...]
    range_us: int | None = None
    """The window, if it has one."""

    @property
    def event_time(self) -> Column | None:
        """The column with the event time."""
        return next((column for column in self.columns if column.lateness_us is not None), None)

    def find(self, name: str) -> Column | None:
        """The column of this name, in any case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that an unqualified name can mean."""

    input: int
    column: Column


@dataclass(frozen=True, slots=True)
class Scope:
    """All inputs in FROM order, what is visible of them, and the join conditions (not yet resolved)."""

    inputs: tuple[Input, ...]
    visible: tuple[Visible, ...]
    conditions: tuple[exp.Expr, ...]

    def position(self, alias: str) -> int | None:
        """The index of the input with this alias."""
        for index, input_ in enumerate(self.inputs):
            if input_.alias.lower() == alias.lower():
                return index
        return None


def read_scope(select: exp.Select, catalog: Catalog, *, alone: bool = False) -> Scope:
    """The scope that the FROM clause of `select` opens; one input is enough where it may be alone."""
    scope = open_scope(select, lambda node: read_source(refuse_table(node), catalog))
    if len(scope.inputs) < 2 and not alone:
        raise too_few_inputs(scope.inputs[0].alias)
    return scope


def too_few_inputs(alias: str) -> ViewError:
    """The refusal of a view of one input."""
    return ViewError(f"a view joins at least two inputs; this one reads only {alias}: add JOIN ... ON")


def open_scope(select: exp.Select, read_input: Callable[[exp.Expr], Input]) -> Scope:
    """The scope of a FROM clause, whose parts `read_input` reads from left to right."""
    first = read_input(select.args["from_"].this)
    inputs = [first]
    visible = [Visible(0, column) for column in first.columns]
    conditions: list[exp.Expr] = []
    for join in select.args.get("joins") or ():
        refuse_join(join)
        right = read_input(join.this)
        for other in inputs:
            if other.alias.lower() == right.alias.lower():
                raise ViewError(
                    f"two inputs are called {right.alias}; give each an alias: FROM {right.source} AS x"
                )
        index = len(inputs)
        inputs.append(right)
        columns = [Visible(index, column) for column in right.columns]
        if using := join.args.get("using"):
            equalities, visible = _join_using(using, inputs, visible, columns)
            conditions += equalities
        else:
            visible = visible + columns
        if (on := join.args.get("on")) is not None:
            conditions.append(on)
    return Scope(tuple(inputs), tuple(visible), tuple(conditions))


def suggestion(name: str, known: list[str]) -> str:
    """A hint: names close to `name`, or else all known names."""
    close = get_close_matches(name.lower(), [candidate.lower() for candidate in known], n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(candidate for candidate in known if candidate.lower() in close)}?"
    return (
        f"available: {', '.join(known[:12])}{', ...' if len(known) > 12 else ''}"
        if known
        else "there are none"
    )


def read_source(table: exp.Table, catalog: Catalog) -> Input:
    """The source of the catalog that `table` names."""
    name = ".".join(part.name for part in table.parts)
    for source, columns in catalog.items():
        if source.lower() == name.lower():
            return Input(table.alias or table.name, source, tuple(columns), range_of(table))
    raise ViewError(f"unknown source {name} in FROM; {suggestion(name, list(catalog))}")


def _join_using(
    using: list[exp.Expr], inputs: list[Input], left: list[Visible], right: list[Visible]
) -> tuple[list[exp.Expr], list[Visible]]:
    """The equalities of USING, and what is visible after it: its columns once, then the other columns."""
    conditions: list[exp.Expr] = []
    shared: list[Visible] = []
    for identifier in using:
        sides = [
            _using_column(identifier, inputs, left, "left"),
            _using_column(identifier, inputs, right, "right"),
        ]
        conditions.append(exp.EQ(this=_column(inputs, sides[0]), expression=_column(inputs, sides[1])))
        shared.append(sides[0])
        left = [visible for visible in left if visible != sides[0]]
        right = [visible for visible in right if visible != sides[1]]
    return conditions, shared + left + right


def _using_column(identifier: exp.Expr, inputs: list[Input], side: list[Visible], name: str) -> Visible:
    found = [visible for visible in side if visible.column.name.lower() == identifier.name.lower()]
    clause = f"USING ({quote(identifier)})"
    if not found:
        raise ViewError(
            f"unknown column in {clause}: the {name} side has no {identifier.name}; "
            f"{suggestion(identifier.name, [visible.column.name for visible in side])}"
        )
    if len(found) > 1:
        candidates = " and ".join(f"{inputs[visible.input].alias}.{visible.column.name}" for visible in found)
        raise ViewError(f"ambiguous column in {clause}: it can be {candidates}; write ON with aliases")
    return found[0]


def _column(inputs: list[Input], visible: Visible) -> exp.Column:
    return exp.column(visible.column.name, table=inputs[visible.input].alias, quoted=True)
