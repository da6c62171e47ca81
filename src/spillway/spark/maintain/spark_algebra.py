"""The local algebra as Spark jobs, for deltas that one process should not join: the same results as on Arrow.

Tables go in and come out as Arrow; in between Spark partitions, spills and uses all its executors.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.maintain import WEIGHT, canonical, comparable, consolidate
from spillway.plan.expression import spark_type
from spillway.spark.jvm import frame_of

_STATE_WEIGHT = "state_weight"


class SparkAlgebra:
    """`join` and `consolidate` of signed tables by Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def join(self, delta: pa.Table, state: pa.Table, pairs: Sequence[tuple[str, str]]) -> pa.Table:
        """All pairs of rows that are equal in `pairs` of columns; weights multiply. No columns: all pairs."""
        names = [*delta.column_names, *state.column_names]
        kept = [name for name in names if name != WEIGHT]
        schema = pa.schema(
            [*(field for field in (*delta.schema, *state.schema) if field.name != WEIGHT),
             pa.field(WEIGHT, pa.int64())]
        )  # fmt: skip
        for number, (ours, theirs) in enumerate(pairs):
            our, their = comparable(delta.column(ours), state.column(theirs))
            delta = delta.append_column(f"key{number}", canonical(our))
            state = state.append_column(f"key{number}", canonical(their))
        left = typed_frame(self._spark, delta)
        right = typed_frame(self._spark, state).withColumnRenamed(WEIGHT, _STATE_WEIGHT)
        keys = [f"key{number}" for number in range(len(pairs))]
        joined = left.join(right, keys, "inner") if keys else left.crossJoin(right)
        weight = (F.col(WEIGHT) * F.col(_STATE_WEIGHT)).alias(WEIGHT)
        return joined.select(*kept, weight).toArrow().cast(schema)

    def consolidate(self, table: pa.Table) -> pa.Table:
        """Equal rows as one with the sum of their weights; rows that cancel are gone.

        Arrow sums tables with floating-point numbers: it makes zeros and NaNs canonical on the way.
        """
        if any(pa.types.is_floating(field.type) for field in table.schema):
            return consolidate(table)
        names = [name for name in table.column_names if name != WEIGHT]
        frame = typed_frame(self._spark, table)
        summed = frame.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
        found = summed.select(*names, WEIGHT).toArrow()
        return found.cast(pa.schema([table.schema.field(name) for name in (*names, WEIGHT)]))


def typed_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table in Spark, with the types that its columns have in a view."""
    schema = ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in table.schema)
    return frame_of(spark, table, schema)
