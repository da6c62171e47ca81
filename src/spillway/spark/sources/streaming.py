"""Opens the sources of a job as streaming DataFrames, and refuses what cannot work before anything runs."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from spillway.catalog import (
    check_path,
    known_columns,
    list_files,
    local_path,
    parquet_columns,
    schema_refusal,
    stream_columns,
    wrong_type,
)
from spillway.errors import SourceError
from spillway.job import SourceSpec, as_written
from spillway.plan.typing import NeedsSparkError
from spillway.spark.jvm import as_spillway_error
from spillway.spark.sources.native_source import is_native, native_frame
from spillway.spark.sources.text import check_options, text_options
from spillway.spark.sources.workload import WorkloadSource
from spillway.workload import parse_options

SourceLike = DataFrame | SourceSpec
FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "avro")
WATERMARK_METADATA = "spark.watermarkDelayMs"
"""Where Spark notes the delay of a watermark."""
SELF_DESCRIBING = ("parquet", "orc")
PLAIN_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""Settings that decide which columns Spark finds in a Parquet file, and their plain values."""
MAX_FILE_AGE = "36500d"
"""By default Spark ignores a file that is a week older than the newest. To read all files, it must
remember all names: some hundred bytes of the driver's memory each."""


def open_source(spark: SparkSession, spec: SourceSpec, known: str | None = None) -> DataFrame:
    """The source as a stream; `known` is a file that was read before and decides the columns."""
    where = f"[sources.{spec.name}]"
    check_options(spec.format, spec.options, where)
    spec = replace(spec, options=text_options(spec.format, spec.options))
    is_file = spec.format.lower() in FILE_FORMATS
    if is_file:
        check_path(spec)
        if "maxfileage" not in (key.lower() for key in spec.options):
            spec = replace(spec, options={**spec.options, "maxFileAge": MAX_FILE_AGE})
    if spec.format == WorkloadSource.name():
        _check_workload(spec, where)
        spark.dataSource.register(WorkloadSource)
    try:
        if is_native(spark, spec.format):
            frame = native_frame(spark, spec)
            return frame if spec.event_time is None else frame.withWatermark(spec.event_time, spec.lateness)
        reader = spark.readStream.format(spec.format).options(**spec.options)
        if spec.schema is not None:
            reader = _with_schema(reader, spec, spec.schema)
        elif is_file:
            reader = reader.schema(_stored_schema(spark, spec, known))
        frame = reader.load(spec.path) if spec.path is not None else reader.load()
        if spec.event_time is not None:
            frame = frame.withWatermark(spec.event_time, spec.lateness)
        if spec.schema is not None and spec.format.lower() in SELF_DESCRIBING:
            _check_schema(spark, spec, frame.schema, where, known)
    except (PySparkException, Py4JError) as error:
        told = as_spillway_error(error) or f"cannot be opened: {_reason(error)}"
        raise SourceError(f"{where} {told}") from None
    return frame


def _with_schema(reader: DataStreamReader, spec: SourceSpec, schema: str) -> DataStreamReader:
    """Spark decides which schemas are good; what is wrong with a bad one is said in our words."""
    try:
        return reader.schema(schema)
    except PySparkException as error:
        raise schema_refusal(spec) or error from None


def source_place(source: SourceLike) -> tuple[str, str, str] | None:
    """Name, format and path of a source, without credentials; None for a DataFrame.

    Of a path with values from the environment, it has what the job file writes and a digest of the whole, so
    that files elsewhere are noticed and the values are not shown.
    """
    if isinstance(source, DataFrame) or source.path is None:
        return None
    written = as_written(source.path)
    parts = urlsplit(written)
    if written != source.path and parts.scheme in ("", "file"):
        whole = os.path.abspath(source.path.removeprefix("file://"))  # noqa: PTH100 - links stay
        path = f"{written.rstrip('/')} ({hashlib.sha256(whole.encode()).hexdigest()[:12]})"
    elif parts.scheme in ("", "file"):
        path = os.path.abspath(source.path.removeprefix("file://"))  # noqa: PTH100 - links stay
    else:
        path = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    return source.name, source.format.lower(), path


def _stored_schema(spark: SparkSession, spec: SourceSpec, known: str | None) -> StructType:
    """The columns of the known file, or else of any file: by their footers, or by a job of Spark."""
    if (found := _footer_schema(spark, spec, known)) is not None:
        return found
    reader = spark.read.format(spec.format).options(**spec.options)
    if known is not None and spec.path is not None:
        try:
            return reader.option("basePath", spec.path).load(unquote(known)).schema
        except PySparkException:
            pass  # the file is gone
    return spark.read.format(spec.format).options(**spec.options).load(spec.path).schema


def _footer_schema(spark: SparkSession, spec: SourceSpec, known: str | None) -> StructType | None:
    """The columns without a job; None if only Spark can tell."""
    if spec.format.lower() != "parquet" or not _reads_plainly(spark):
        return None
    try:
        columns = stream_columns(SourceSpec(spec.name, spec.format, spec.path, options=spec.options))
        if known is not None:
            path = Path(unquote(urlsplit(known).path))
            if not path.exists() or list_files(local_path(spec)).partitions:
                return None
            columns = known_columns(parquet_columns(str(path)), str(path))
    except NeedsSparkError:
        return None
    schema = StructType.fromDDL(", ".join(f"`{column.name}` {column.type}" for column in columns))
    assert isinstance(schema, StructType)
    return schema


def _reads_plainly(spark: SparkSession) -> bool:
    """Whether paths without a scheme are on this machine, and no setting changes the columns of a file."""
    root = str(spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS"))
    return root.startswith("file:") and all(
        (spark.conf.get(name, value) or "").lower() == value.lower() for name, value in PLAIN_SETTINGS.items()
    )


def _has_column(spark: SparkSession, spec: SourceSpec, name: str) -> bool:
    """Whether any file has the column; called only if some file lacks it."""
    try:
        merged = spark.read.format(spec.format).options(**spec.options).option("mergeSchema", "true")
        return name in (field.name.lower() for field in merged.load(spec.path).schema.fields)
    except PySparkException:
        return True  # types differ: the file that has the odd one will be named


def _is_stored(spark: SparkSession, spec: SourceSpec, name: str) -> bool:
    """Whether a column is inside the files, not in the names of their directories, which have no type."""
    inside = spark.read.format(spec.format).options(**spec.options).option("recursiveFileLookup", "true")
    return name.lower() in (field.name.lower() for field in inside.load(spec.path).schema.fields)


def _check_schema(
    spark: SparkSession, spec: SourceSpec, declared: StructType, where: str, known: str | None
) -> None:
    """Check the declared columns against Parquet and ORC files; a wrong type would fail much later."""
    try:
        stored = {field.name.lower(): field.dataType for field in _stored_schema(spark, spec, known).fields}
    except PySparkException:
        return  # An empty directory has no schema yet; files that come later are checked by the scan.
    for field in declared.fields:
        found = stored.get(field.name.lower())
        if found is None and _has_column(spark, spec, field.name.lower()):
            continue
        if found is None:
            raise SourceError(
                f"{where} schema has column {field.name}, but the files in {spec.path} do not; "
                f"they have {', '.join(stored)}"
            )
        if found.simpleString() != field.dataType.simpleString() and _is_stored(spark, spec, field.name):
            raise wrong_type(spec, field.name, field.dataType.simpleString(), found.simpleString())


def _check_workload(spec: SourceSpec, where: str) -> None:
    """Spark would report a bad option when the first batch is planned, from a Python worker."""
    options = spec.options if spec.path is None else {**spec.options, "path": spec.path}
    try:
        parse_options(options)
    except SourceError as error:
        raise SourceError(f"{where} {error}") from None


def _reason(error: PySparkException | Py4JError) -> str:
    """Spark's message without its stack trace."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage()).strip()
    return text.splitlines()[0] if text else type(error).__name__
