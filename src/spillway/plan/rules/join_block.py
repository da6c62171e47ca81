"""A view as one block: its inputs, its conditions, its result columns, which is what the planners plan.

A `SELECT` of joined sources is one block as it stands, so its conditions keep their order and its checkpoints
stay valid. Any other statement goes through `plan.algebra` first, and so does a `SELECT` whose inputs
no equalities connect as it is written. `_one_join` is the one place that refuses what the algebra can express
and nothing can run yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Catalog
from spillway.plan.algebra import (
    Filter,
    InnerJoin,
    Project,
    Relation,
    SourceRows,
    build,
    rewritten,
    simplified,
)
from spillway.plan.rules.equality_graph import is_connected
from spillway.plan.rules.source_types import source_type
from spillway.plan.sql import (
    Input,
    Predicates,
    Scope,
    SelectItem,
    flat_select,
    read_predicates,
    read_scope,
    read_select_list,
    refuse_shadowing,
    sort_conjuncts,
    too_few_inputs,
    unsupported,
)


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """Result columns over joined inputs."""

    scope: Scope
    items: tuple[SelectItem, ...]
    predicates: Predicates


def is_flat(statement: exp.Expr) -> bool:
    """Whether a statement is one `SELECT` that names its sources in FROM."""
    if not isinstance(statement, exp.Select) or statement.args.get("with_") is not None:
        return False
    parts = [statement.args.get("from_"), *(statement.args.get("joins") or ())]
    return not any(part is not None and isinstance(part.this, exp.Subquery) for part in parts)


def read_block(statement: exp.Expr, catalog: Catalog) -> JoinBlock:
    """The block that a statement is; refused if it is not one."""
    if not is_flat(statement) or not statement.args.get("joins"):
        return _simplified_block(statement, catalog)
    select = flat_select(statement)
    scope = read_scope(select, catalog)
    block = JoinBlock(scope, read_select_list(select, scope), read_predicates(select, scope))
    return block if is_connected(block.predicates, scope) else _simplified_block(statement, catalog)


def _simplified_block(statement: exp.Expr, catalog: Catalog) -> JoinBlock:
    """The block that a statement is after the rules of the algebra."""
    project, join, parts = _one_join(simplified(build(statement, catalog, source_type)), statement)
    inputs = _inputs([part.rows for part in parts], catalog)
    owners = {
        field.id: exp.column(field.name, table=input_.alias, quoted=True)
        for input_, part in zip(inputs, parts, strict=True)
        for field in part.rows.fields
    }

    def named(node: exp.Expr) -> exp.Expr:
        resolved = rewritten(node, lambda column: owners[int(column.name)])
        refuse_shadowing(resolved)
        return resolved

    scope = Scope(inputs, (), ())
    conjuncts = [node for part in parts for node in part.conjuncts]
    conjuncts += join.conjuncts
    items = tuple(SelectItem(item.field.name, named(item.value)) for item in project.items)
    return JoinBlock(scope, items, sort_conjuncts(map(named, conjuncts), scope))


@dataclass(frozen=True, slots=True)
class _FilteredSource:
    """An input of the join."""

    rows: SourceRows
    conjuncts: tuple[exp.Expr, ...]


def _one_join(relation: Relation, statement: exp.Expr) -> tuple[Project, InnerJoin, list[_FilteredSource]]:
    """The relation as a projection over a join of filtered sources; the one place that refuses others."""
    below = relation.input if isinstance(relation, Project) else relation
    inputs = below.inputs if isinstance(below, InnerJoin) else (below,)
    parts = [part for part in map(_filtered_source, inputs) if part is not None]
    if isinstance(relation, Project) and isinstance(below, InnerJoin) and len(parts) == len(inputs):
        return relation, below, parts
    if len(parts) == len(inputs):
        raise too_few_inputs(parts[0].rows.alias)
    union = statement.find(exp.Union)
    if union is not None:
        raise unsupported("UNION ALL", union, "run one view per SELECT")
    raise ViewError(
        "a join with windows cannot be an input of another join yet; "
        "join all sources in one SELECT, with [RANGE ...] after those that have a window"
    )


def _filtered_source(relation: Relation) -> _FilteredSource | None:
    rows, conjuncts = (relation.input, relation.conjuncts) if isinstance(relation, Filter) else (relation, ())
    return _FilteredSource(rows, conjuncts) if isinstance(rows, SourceRows) else None


def _inputs(parts: Sequence[SourceRows], catalog: Catalog) -> tuple[Input, ...]:
    """The inputs of the block; an alias that several queries use gets a number."""
    taken = {part.alias.lower() for part in parts}
    seen: set[str] = set()
    inputs = []
    for part in parts:
        alias = part.alias
        if alias.lower() in seen:
            alias = next(name for n in count(2) if (name := f"{part.alias}_{n}").lower() not in taken)
        seen.add(alias.lower())
        taken.add(alias.lower())
        inputs.append(Input(alias, part.source, tuple(catalog[part.source]), part.range_us))
    return tuple(inputs)
