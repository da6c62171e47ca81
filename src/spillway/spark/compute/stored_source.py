"""Opens a job's sources as stored relations: files, Delta tables, Spark tables, tables of embedded databases.

A database table is read once, in one statement with a quoted name, and handed to Spark as Arrow. Delta tables
see `delta_table`. Known limit: PostgreSQL is not a source here yet.

The relations of a view as DataFrames: filtered, and with exactly the columns that the view needs.
"""

from collections.abc import Mapping
from pathlib import Path

import duckdb
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.compute import ComputeView, ReadRelation
from spillway.errors import SourceError, ViewError
from spillway.job import SourceSpec
from spillway.spark.compute.database_table import read_duckdb, read_sqlite
from spillway.spark.compute.delta_table import DeltaFeatureError, read_delta
from spillway.spark.sources import ColumnCheck, stored_input, text_options

FORMATS = ("parquet", "orc", "csv", "json", "delta", "table", "duckdb", "sqlite")
CHECKED = ("parquet", "orc")
"""Formats whose files say themselves which columns they have."""


def open_stored_source(spark: SparkSession, spec: SourceSpec) -> DataFrame:
    where = f"[sources.{spec.name}]"
    kind = spec.format.lower()
    if kind not in FORMATS:
        raise SourceError(f'{where} format = "{spec.format}": stored relations are {", ".join(FORMATS)}')
    if kind == "table":
        return _spark_table(spark, spec, where)
    if spec.path is None:
        raise SourceError(f'{where} has format "{spec.format}" but no path; add path = "..."')
    if "://" not in spec.path and not any(c in spec.path for c in "*?[{") and not Path(spec.path).exists():
        raise SourceError(f"{where} path {spec.path} does not exist; create it, or correct the path")
    if kind == "delta":
        return _delta(spark, spec.path, where)
    if kind in ("duckdb", "sqlite"):
        return _database(spark, spec, spec.path, where)
    try:
        reader = spark.read.format(kind).options(**text_options(kind, spec.options))
        if spec.schema is not None:
            reader = reader.schema(spec.schema)
        return reader.load(spec.path)
    except (PySparkException, Py4JError) as error:
        raise SourceError(f"{where} cannot be opened: {_reason(error)}") from None


def _spark_table(spark: SparkSession, spec: SourceSpec, where: str) -> DataFrame:
    name = spec.options.get("table", spec.name)
    try:
        return spark.table(name)
    except PySparkException as error:
        raise SourceError(f"{where} table {name} cannot be opened: {_reason(error)}") from None


def _delta(spark: SparkSession, path: str, where: str) -> DataFrame:
    try:
        return read_delta(spark, path)
    except DeltaFeatureError as error:
        raise SourceError(f"{where} Delta table {path} needs {error}; rewrite it without") from None
    except (DeltaError, OSError) as error:
        raise SourceError(f"{where} {path} is no Delta table that can be read: {_line(error)}") from None
    except (PySparkException, Py4JError) as error:
        raise SourceError(f"{where} cannot be opened: {_reason(error)}") from None


def _database(spark: SparkSession, spec: SourceSpec, path: str, where: str) -> DataFrame:
    """One table of a DuckDB or SQLite file."""
    name = spec.options.get("table", spec.name)
    read = read_duckdb if spec.format.lower() == "duckdb" else read_sqlite
    try:
        return spark.createDataFrame(read(path, name))
    except (duckdb.Error, OSError, ValueError) as error:
        raise SourceError(f"{where} table {name} of {path} cannot be read: {_line(error)}") from None
    except (PySparkException, Py4JError) as error:
        raise SourceError(f"{where} table {name} of {path} cannot be read: {_reason(error)}") from None


def _reason(error: PySparkException | Py4JError) -> str:
    java = getattr(error, "java_exception", None)
    return _line(error if java is None else java.getMessage())


def _line(error: object) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def check_stored_files(
    spark: SparkSession, view: ComputeView, sources: Mapping[str, DataFrame], specs: Mapping[str, SourceSpec]
) -> None:
    """Refuse a file without a column that the view reads: Spark would take it for null without a word."""
    checking = ColumnCheck(spark)
    for name, spec in specs.items():
        if spec.format.lower() not in CHECKED:
            continue
        keys, others = list[str](), list[str]()
        for number, one in enumerate(view.relations):
            if one.source == name:
                joined = {column for key in view.keys for member, column in key.members if member == number}
                for column in one.columns:
                    (keys if column.name in joined else others).append(column.expression)
                others.append(one.filter or "true")
        relation = stored_input(spec, sources[name].schema, keys, others)
        checking.check_all(relation, sources[name].inputFiles(), is_inferred=spec.schema is None)


def read_relations(view: ComputeView, sources: Mapping[str, DataFrame]) -> list[DataFrame]:
    """One DataFrame per relation; an expression that Spark does not accept is refused here."""
    return [_read(one, sources[one.source]) for one in view.relations]


def _read(one: ReadRelation, source: DataFrame) -> DataFrame:
    try:
        frame = source if one.filter is None else source.where(F.expr(one.filter))
        return frame.select(*(F.expr(column.expression).alias(column.name) for column in one.columns))
    except PySparkException as error:
        raise ViewError(f"relation {one.alias}: {str(error).splitlines()[0]}") from None
