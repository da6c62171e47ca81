"""The view over complete sources: the initial load, full recomputation, and what `verify` compares with.

Every table's rows carry weights, so a table at an earlier vector is its rows now minus the changes since.
DuckDB orders the joins; the conditions are those of the view graph, all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from spillway.maintain.definition import ViewDefinition, wide
from spillway.maintain.delta import WEIGHT
from spillway.maintain.execute import Executor


def recompute(definition: ViewDefinition, executor: Executor, tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of the view with their counts, as a delta from nothing."""
    connection = duckdb.connect()
    try:
        for node, table in enumerate(tables):
            connection.register(f"r{node}", executor.filtered(node, table))
        conditions = [
            f"r{edge.left}.{wide(edge.left, a)} = r{edge.right}.{wide(edge.right, b)}"
            for edge in definition.graph.edges
            for a, b in zip(
                definition.edge_columns(edge, edge.left),
                definition.edge_columns(edge, edge.right),
                strict=True,
            )
        ]
        names = ", ".join(definition.wide_columns(definition.graph.nodes))
        weight = " * ".join(f"r{node}.{WEIGHT}" for node in definition.graph.nodes)
        sources = ", ".join(f"r{node}" for node in definition.graph.nodes)
        joined = connection.sql(
            f"SELECT {names}, CAST({weight} AS BIGINT) AS {WEIGHT} FROM {sources} "
            f"WHERE {' AND '.join(conditions)}"
        ).to_arrow_table()
    finally:
        connection.close()
    return executor.project([joined])


def compare(left: pa.Table, right: pa.Table) -> int:
    """In how many rows two bags differ, counted with multiplicity."""
    connection = duckdb.connect()
    try:
        connection.register("one", left)
        connection.register("other", right.select(left.column_names))
        columns = ", ".join(name for name in left.column_names if name != WEIGHT)
        (found,) = connection.execute(
            f"SELECT coalesce(sum(abs(w)), 0)::BIGINT FROM (SELECT sum({WEIGHT}) AS w FROM "
            f"(FROM one UNION ALL (SELECT {columns}, -{WEIGHT} FROM other)) GROUP BY {columns})"
        ).fetchall()
    finally:
        connection.close()
    return int(found[0])
