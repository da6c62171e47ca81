"""A Delta table as a DataFrame, through its log and without a Java connector.

The log says which files the current version has, which columns of which types, and the partition values of
each file. So columns that were added later are null in older files, and a partition "01" stays text. Spark
reads partition values from the names of directories, in one scan. If it would read them wrongly (text that is
not ASCII, directories with other names), every partition is a scan of its own. Known limit: tables with
deletion vectors or column mapping are refused.
"""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spillway.catalog import delta_files, open_delta
from spillway.compute import quoted


def read_delta(spark: SparkSession, path: str) -> DataFrame:
    """The rows of the current version, with the table's own schema."""
    table = open_delta(path)
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    columns = table.metadata().partition_columns
    files = delta_files(table, path, columns)
    if not files:
        return spark.createDataFrame([], schema)
    paths = [file for found in files.values() for file in found]
    if all(_is_readable(file, columns) for file in paths):
        frame = spark.read.schema(schema).option("basePath", path).parquet(*paths)
    else:
        frame = _by_partition(spark, files, schema, columns)
    return frame.select(*(F.col(quoted(name)) for name in schema.names))


def _is_readable(file: str, columns: Sequence[str]) -> bool:
    """Whether Spark finds the partition values of a file in its directories."""
    if not columns:
        return True
    parts = file.split("/")[:-1][-len(columns) :]
    names = [unquote(part.split("=", 1)[0]) for part in parts]
    return names == list(columns) and all(unquote(part).isascii() for part in parts)


def _by_partition(
    spark: SparkSession,
    files: Mapping[tuple[Any, ...], Sequence[str]],
    schema: StructType,
    columns: Sequence[str],
) -> DataFrame:
    stored = StructType([field for field in schema.fields if field.name not in columns])
    parts = []
    for values, paths in files.items():
        frame = spark.read.schema(stored).parquet(*paths)
        for name, value in zip(columns, values, strict=True):
            frame = frame.withColumn(name, F.lit(value).cast(schema[name].dataType))
        parts.append(frame.select(*(F.col(quoted(name)) for name in schema.names)))
    return reduce(DataFrame.union, parts)
