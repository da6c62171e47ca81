"""Opens a job's sources as stored relations: files, Delta tables, Spark tables, tables of embedded databases.

A database table is read once, in one statement with a quoted name, and handed to Spark as Arrow. Delta tables
are read through their log, without a Java connector: the files that the current version names. Known limit:
Delta tables with deletion vectors or column mapping are refused, and PostgreSQL is not a source here yet.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spillway.errors import SourceError
from spillway.job import SourceSpec
from spillway.spark.text_options import text_options

FORMATS = ("parquet", "orc", "csv", "json", "delta", "table", "duckdb", "sqlite")
READER_FEATURES = frozenset({"timestampNtz"})
"""Of a Delta table: what its files can be read with, without knowing more."""
_PLAIN_READER = 1


def open_stored_sources(spark: SparkSession, specs: Mapping[str, SourceSpec]) -> dict[str, DataFrame]:
    return {name: open_stored_source(spark, spec) for name, spec in specs.items()}


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
        table = DeltaTable(path)
        protocol = table.protocol()
        unknown = set(protocol.reader_features or ()) - READER_FEATURES
        if unknown or (protocol.min_reader_version > _PLAIN_READER and not protocol.reader_features):
            named = ", ".join(sorted(unknown)) or f"reader version {protocol.min_reader_version}"
            raise SourceError(f"{where} Delta table {path} needs {named}; rewrite it without")
        files = table.file_uris()
        if not files:
            return spark.createDataFrame(pa.schema(table.schema().to_arrow()).empty_table())
        return spark.read.option("basePath", path).parquet(*files)
    except (DeltaError, OSError) as error:
        raise SourceError(f"{where} {path} is no Delta table that can be read: {_line(error)}") from None
    except (PySparkException, Py4JError) as error:
        raise SourceError(f"{where} cannot be opened: {_reason(error)}") from None


def _database(spark: SparkSession, spec: SourceSpec, path: str, where: str) -> DataFrame:
    """One table of a DuckDB or SQLite file."""
    name = spec.options.get("table", spec.name)
    statement = "SELECT * FROM " + ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
    try:
        if spec.format.lower() == "duckdb":
            with duckdb.connect(path, read_only=True) as connection:
                rows = connection.sql(statement).to_arrow_table()
        else:
            rows = _sqlite(path, statement)
        return spark.createDataFrame(rows)
    except (duckdb.Error, OSError, ValueError) as error:
        raise SourceError(f"{where} table {name} of {path} cannot be read: {_line(error)}") from None


def _sqlite(path: str, statement: str) -> pa.Table:
    import sqlite3

    import pandas as pd

    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            frame = pd.read_sql_query(statement, connection, dtype_backend="pyarrow")
        except pd.errors.DatabaseError as error:
            raise ValueError(str(error)) from None
    return pa.Table.from_pandas(frame, preserve_index=False)


def _reason(error: PySparkException | Py4JError) -> str:
    java = getattr(error, "java_exception", None)
    return _line(error if java is None else java.getMessage())


def _line(error: object) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
