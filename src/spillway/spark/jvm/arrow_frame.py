"""An Arrow table as a DataFrame, with all of its rows.

PySpark 4.3 ends a table at its first chunk without rows and drops the rows behind it, without a word. So a
table is handed over in one chunk.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, table: pa.Table, schema: str | None = None) -> DataFrame:
    """`schema` is Spark's DDL, where the types that Spark would take by itself are not wanted."""
    whole = table.combine_chunks()
    return spark.createDataFrame(whole) if schema is None else spark.createDataFrame(whole, schema=schema)
