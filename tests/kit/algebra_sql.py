"""A relation of `plan.algebra` as DuckDB SQL: one nested SELECT per operator, columns named by their ids."""

from collections.abc import Sequence

from sqlglot import exp

from spillway.plan.algebra import Filter, InnerJoin, Project, Relation, UnionAll
from spillway.plan.sql import conjunction, source_sql


def duckdb_sql(relation: Relation) -> str:
    """A query with the rows of `relation`."""
    if isinstance(relation, Filter):
        return f"SELECT * FROM ({duckdb_sql(relation.input)}) t WHERE {_all(relation.conjuncts)}"
    if isinstance(relation, Project):
        items = [f'{_sql(item.value)} AS "{item.field.id}"' for item in relation.items]
        return f"SELECT {_list(items)} FROM ({duckdb_sql(relation.input)}) t"
    if isinstance(relation, InnerJoin):
        inputs = [f"({duckdb_sql(part)}) t{place}" for place, part in enumerate(relation.inputs)]
        return f"SELECT * FROM {', '.join(inputs)} WHERE {_all(relation.conjuncts)}"
    if isinstance(relation, UnionAll):
        branches = []
        for branch in relation.inputs:
            pairs = zip(branch.fields, relation.fields, strict=True)
            items = [f'"{field.id}" AS "{own.id}"' for field, own in pairs]
            branches.append(f"SELECT {_list(items)} FROM ({duckdb_sql(branch)}) t")
        return " UNION ALL ".join(branches)
    items = [f'"{field.name}" AS "{field.id}"' for field in relation.fields]
    return f'SELECT {_list(items)} FROM "{relation.source}"'


def _list(items: Sequence[str]) -> str:
    """A select list; rows without columns still have to be counted."""
    return ", ".join(items) or '1 AS "none"'


def _all(nodes: Sequence[exp.Expr]) -> str:
    return _sql(conjunction(nodes)) if nodes else "true"


def _sql(node: exp.Expr) -> str:
    return source_sql(node).replace("`", '"')
