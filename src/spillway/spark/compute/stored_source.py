"""Opens a job's sources as stored relations: files, Delta tables, Spark tables, tables of embedded databases.

A database table is read once, in one statement with a quoted name, and handed to Spark as Arrow. For Delta
tables see `delta_table`. Known limit: PostgreSQL is not a source here yet.

`open_view` opens the relations of a view; `read_relations` filters them and keeps the columns that it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.catalog import DeltaFeatureError
from spillway.compute import ComputeView, ReadRelation, read_view
from spillway.errors import SourceError, ViewError
from spillway.job import SourceSpec
from spillway.model import Catalog, View
from spillway.spark.compute.database_table import read_duckdb, read_sqlite
from spillway.spark.compute.delta_table import read_delta
from spillway.spark.jvm import as_spillway_error, frame_of
from spillway.spark.sources import ColumnCheck, check_options, columns_of, stored_input, text_options

FORMATS = ("parquet", "orc", "csv", "json", "delta", "table", "duckdb", "sqlite")
CHECKED = ("parquet", "orc")
"""Formats whose files list their columns."""


@dataclass(frozen=True, slots=True)
class OpenedView:
    """A view, the sources that it reads, and the specs of sources that were not given as DataFrames."""

    view: ComputeView
    sources: Mapping[str, DataFrame]
    specs: Mapping[str, SourceSpec]
    catalog: Catalog


def open_view(spark: SparkSession, view: View, sources: Mapping[str, DataFrame | SourceSpec]) -> OpenedView:
    """Open the sources and take the view apart; streams and files without a needed column are refused."""
    opened = {
        name: open_stored_source(spark, source) if isinstance(source, SourceSpec) else source
        for name, source in sources.items()
    }
    for name, frame in opened.items():
        if frame.isStreaming:
            raise SourceError(f"source {name} is a stream; compute needs stored relations: use spark.read")
    catalog = {name: columns_of(frame) for name, frame in opened.items()}
    parts = read_view(view, catalog)
    used = {relation.source: opened[relation.source] for relation in parts.relations}
    specs = {name: spec for name in used if isinstance(spec := sources[name], SourceSpec)}
    check_stored_files(spark, parts, used, specs)
    return OpenedView(parts, used, specs, catalog)


def open_stored_source(spark: SparkSession, spec: SourceSpec) -> DataFrame:
    where = f"[sources.{spec.name}]"
    kind = spec.format.lower()
    if kind not in FORMATS:
        raise SourceError(
            f'{where} format = "{spec.format}": stored relations are {", ".join(FORMATS)}; use one'
        )
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
    check_options(kind, spec.options, where)
    try:
        reader = spark.read.format(kind).options(**text_options(kind, spec.options))
        if spec.schema is not None:
            reader = reader.schema(spec.schema)
        return reader.load(spec.path)
    except (PySparkException, Py4JError) as error:
        told = as_spillway_error(error) or f"cannot be opened: {_reason(error)}"
        raise SourceError(f"{where} {told}") from None


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
        raise SourceError(f"{where} {path} is not a readable Delta table: {_line(error)}") from None
    except (PySparkException, Py4JError) as error:
        raise SourceError(f"{where} cannot be opened: {_reason(error)}") from None


def _database(spark: SparkSession, spec: SourceSpec, path: str, where: str) -> DataFrame:
    """One table of a DuckDB or SQLite file."""
    name = spec.options.get("table", spec.name)
    read = read_duckdb if spec.format.lower() == "duckdb" else read_sqlite
    try:
        return frame_of(spark, read(path, name))
    except (duckdb.Error, OSError, ValueError) as error:
        raise SourceError(
            f"{where} table {name} of {path} cannot be read: {_line(error)}; correct path or options.table"
        ) from None
    except (PySparkException, Py4JError) as error:
        raise SourceError(
            f"{where} table {name} of {path} cannot be read: {_reason(error)}; correct path or options.table"
        ) from None


def _reason(error: PySparkException | Py4JError) -> str:
    java = getattr(error, "java_exception", None)
    return _line(error if java is None else java.getMessage())


def _line(error: object) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def check_stored_files(
    spark: SparkSession, view: ComputeView, sources: Mapping[str, DataFrame], specs: Mapping[str, SourceSpec]
) -> None:
    """Refuse a file that lacks a column of the view: Spark would silently read nulls."""
    checking = ColumnCheck(spark)
    for name, spec in specs.items():
        if spec.format.lower() not in CHECKED:
            continue
        keys, others = list[str](), list[str]()
        for number, read in enumerate(view.relations):
            if read.source == name:
                joined = {column for key in view.keys for member, column in key.members if member == number}
                for column in read.columns:
                    (keys if column.name in joined else others).append(column.expression)
                others.append(read.filter or "true")
        relation = stored_input(spec, sources[name].schema, keys, others)
        checking.check_all(relation, sources[name].inputFiles(), is_inferred=spec.schema is None)


def read_relations(view: ComputeView, sources: Mapping[str, DataFrame]) -> list[DataFrame]:
    """One DataFrame per relation; an expression that Spark does not accept is refused here."""
    return [_read(relation, sources[relation.source]) for relation in view.relations]


def _read(relation: ReadRelation, source: DataFrame) -> DataFrame:
    try:
        frame = source if relation.filter is None else source.where(F.expr(relation.filter))
        return frame.select(*(F.expr(column.expression).alias(column.name) for column in relation.columns))
    except PySparkException as error:
        raise ViewError(f"relation {relation.alias}: {str(error).splitlines()[0]}") from None
