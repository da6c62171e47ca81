"""The view over complete sources: the initial load, full recomputation, and what `verify` compares with.

Every table's rows carry weights, so a table at an earlier vector is its rows now minus the changes since.
DuckDB orders the joins and sums equal rows; rows with floating-point numbers are summed by the executor's
algebra, which makes zeros and NaNs canonical.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from spillway.maintain.definition import ViewDefinition, wide
from spillway.maintain.delta import WEIGHT
from spillway.maintain.evaluation import evaluating
from spillway.maintain.execute import Executor

_FLOATING = ("DOUBLE", "FLOAT")


def recompute(definition: ViewDefinition, executor: Executor, tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of the view with their counts, as a delta from nothing."""
    connection = duckdb.connect()
    try:
        for node, table in enumerate(tables):
            connection.register(f"r{node}", executor.kept(node, table))
        joined = _joined_sql(definition)
        with evaluating():
            rows = connection.sql(joined)
            if any(str(kind) in _FLOATING for kind in rows.types):
                return executor.consolidated(rows.to_arrow_table())
            names = ", ".join(name for name in rows.columns if name != WEIGHT)
            return connection.sql(
                f"SELECT {names}, CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT} FROM ({joined}) "
                f"GROUP BY ALL HAVING sum({WEIGHT}) <> 0"
            ).to_arrow_table()
    finally:
        connection.close()


def _joined_sql(definition: ViewDefinition) -> str:
    """The view's join with all of its conditions, over tables `r0`, `r1`, ... in wide columns."""
    nodes = definition.graph.nodes
    conditions = [
        f"r{edge.left}.{wide(edge.left, a)} = r{edge.right}.{wide(edge.right, b)}"
        for edge in definition.graph.edges
        for a, b in zip(
            definition.edge_columns(edge, edge.left), definition.edge_columns(edge, edge.right), strict=True
        )
    ]
    if definition.residual is not None:
        conditions.append(f"({definition.residual})")
    items = [f"{item.sql} AS o{place}" for place, item in enumerate(definition.outputs)]
    weight = " * ".join(f"r{node}.{WEIGHT}" for node in nodes)
    return (
        f"SELECT {', '.join([*items, f'CAST({weight} AS BIGINT) AS {WEIGHT}'])} "
        f"FROM {', '.join(f'r{node}' for node in nodes)} WHERE {' AND '.join(conditions)}"
    )


def compare(left: pa.Table, right: pa.Table) -> int:
    """In how many rows two bags differ, counted with multiplicity."""
    connection = duckdb.connect()
    try:
        connection.register("ours", left)
        connection.register("theirs", right.select(left.column_names))
        columns = ", ".join(name for name in left.column_names if name != WEIGHT)
        (found,) = connection.execute(
            f"SELECT coalesce(sum(abs(w)), 0)::BIGINT FROM (SELECT sum({WEIGHT}) AS w FROM "
            f"(FROM ours UNION ALL (SELECT {columns}, -{WEIGHT} FROM theirs)) GROUP BY {columns})"
        ).fetchall()
    finally:
        connection.close()
    return int(found[0])
