"""The first load of a large maintained view, by the planner and the execution of `spillway compute`.

The sources' rows at the cut go to scratch files as Parquet, with the columns that the view needs; a join tree
is chosen from their statistics and run by Spark, which may write intermediate results; the joined rows come
back as files too, so only equal rows that are summed are in this process. Views with conditions or
expressions over several tables are left to the direct load, and so are small ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spillway.job import SinkSpec, SourceSpec, read_costs
from spillway.maintain import WEIGHT, ViewDefinition, consolidate, wide
from spillway.model import View
from spillway.spark.compute import plan_computation


class ComputeLoad:
    """Loads of more than `rows` rows of all sources; None says that a load is for others."""

    def __init__(self, spark: SparkSession, rows: int) -> None:
        self._spark, self._rows = spark, rows
        self.summary: dict[str, object] | None = None
        """What the last computation reported."""

    def __call__(self, definition: ViewDefinition, tables: Sequence[pa.Table]) -> pa.Table | None:
        """The rows of the view with their counts; `tables` are signed rows in wide columns."""
        sizes = [table.num_rows for table in tables]
        plain = {name for table in tables for name in table.column_names}
        outputs = [item.sql for item in definition.outputs]
        if sum(sizes) <= self._rows or 0 in sizes or definition.residual or not plain.issuperset(outputs):
            return None
        with tempfile.TemporaryDirectory(prefix="spillway-load-") as scratch:
            root = Path(scratch)
            weights = [_write(root, definition, node, table) for node, table in enumerate(tables)]
            view = View.sql(_view_sql(definition, [one for one in weights if one is not None]))
            sources = {
                f"r{node}": SourceSpec(f"r{node}", "parquet", f"{root}/r{node}")
                for node in range(len(tables))
            }
            computation = plan_computation(self._spark, view, sources, units=read_costs())
            self.summary = computation.run(SinkSpec("parquet", f"{root}/view"))
            types = {field.name: field.type for table in tables for field in table.schema}
            return _summed(root / "view", definition, [types[name] for name in outputs])


def _write(root: Path, definition: ViewDefinition, node: int, table: pa.Table) -> str | None:
    """One source as files; the name of its column of weights, if there are other weights than 1."""
    needed = {item.sql for item in definition.outputs}
    for edge in definition.graph.edges:
        if node in (edge.left, edge.right):
            needed |= {wide(node, place) for place in definition.edge_columns(edge, node)}
    names, weight = [name for name in table.column_names if name in needed], None
    kept = table.select(names)
    if not pc.all(pc.equal(table.column(WEIGHT), 1)).as_py():
        weight = f"w{node}"
        kept = kept.append_column(weight, table.column(WEIGHT))
    (root / f"r{node}").mkdir()
    pq.write_table(kept, root / f"r{node}" / "part-0.parquet")
    return weight


def _view_sql(definition: ViewDefinition, weights: Sequence[str]) -> str:
    """The join over `r0`, `r1`, ..., whose columns have names of their own."""
    conditions = [
        f"{wide(edge.left, a)} = {wide(edge.right, b)}"
        for edge in definition.graph.edges
        for a, b in zip(
            definition.edge_columns(edge, edge.left), definition.edge_columns(edge, edge.right), strict=True
        )
    ]
    items = [f"{item.sql} AS o{place}" for place, item in enumerate(definition.outputs)]
    tables = ", ".join(f"r{node}" for node in definition.graph.nodes)
    return f"SELECT {', '.join([*items, *weights])} FROM {tables} WHERE {' AND '.join(conditions)}"


def _summed(path: Path, definition: ViewDefinition, types: Sequence[pa.DataType]) -> pa.Table:
    """Joined rows in files as rows with counts; `consolidate` makes zeros and NaNs canonical."""
    names = [f"o{place}" for place in range(len(definition.outputs))]
    schema = pa.schema([*zip(names, types, strict=True), (WEIGHT, pa.int64())])
    joined = ds.dataset(path, format="parquet")
    weights = [name for name in joined.schema.names if name not in names]
    product = " * ".join(weights) or "1"
    if any(pa.types.is_floating(kind) for kind in types):
        table = joined.to_table()
        weight = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        for name in weights:
            weight = pc.multiply(weight, table.column(name))
        return consolidate(table.select(names).append_column(WEIGHT, weight).cast(schema))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("joined", joined)
        found = connection.sql(
            f"SELECT {', '.join(names)}, CAST(sum({product}) AS BIGINT) AS {WEIGHT} FROM joined "
            f"GROUP BY ALL HAVING sum({product}) <> 0"
        )
        return found.to_arrow_table().cast(schema)
