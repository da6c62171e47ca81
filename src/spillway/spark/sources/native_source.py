"""Sources that only tasks of Spillway read: Delta tables by their log, and Arrow IPC files.

To Spark such a source is a stream of Parquet files with the same columns, so that the view is bound and typed
as for any other; Spark never reads a file of it. A session that has the Delta connector reads Delta tables by
itself.
"""

import json

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spillway.catalog import DeltaFeatureError, check_path, list_files, local_path, open_delta
from spillway.errors import SourceError
from spillway.job import SourceSpec
from spillway.plan.expression import spark_type
from spillway.plan.typing import NeedsSparkError

NATIVE_FORMATS = ("arrow", "delta")
_EXTENSIONS = "spark.sql.extensions"


def is_native(spark: SparkSession, source_format: str) -> bool:
    """Whether only tasks of Spillway can read this format in this session."""
    kind = source_format.lower()
    return kind == "arrow" or (
        kind == "delta" and "delta" not in (spark.conf.get(_EXTENSIONS, "") or "").lower()
    )


def native_frame(spark: SparkSession, spec: SourceSpec) -> DataFrame:
    """The source as a stream that has its columns."""
    where = f"[sources.{spec.name}]"
    check_path(spec)
    try:
        path = local_path(spec)
    except NeedsSparkError as reason:
        raise SourceError(
            f"{where} {reason}; {spec.format} sources are directories on this machine"
        ) from None
    if spec.schema is not None:
        schema = StructType.fromDDL(spec.schema)
        assert isinstance(schema, StructType)
    else:
        schema = _delta_schema(where, path) if spec.format.lower() == "delta" else _arrow_schema(where, path)
    return spark.readStream.format("parquet").options(**spec.options).schema(schema).load(path)


def _delta_schema(where: str, path: str) -> StructType:
    from deltalake.exceptions import DeltaError

    try:
        return StructType.fromJson(json.loads(open_delta(path).schema().to_json()))
    except DeltaFeatureError as feature:
        raise SourceError(
            f"{where} Delta table {path} needs {feature}, which Spillway does not read; rewrite the table "
            "without it, or give Spark the Delta connector in [spark]"
        ) from None
    except (DeltaError, OSError) as error:
        told = " ".join(str(error).split())
        raise SourceError(f"{where} Delta table {path} cannot be read: {told}; check its path") from None


def _arrow_schema(where: str, path: str) -> StructType:
    """The columns of the first file."""
    try:
        files = list_files(path).paths
        if not files:
            raise SourceError(f"{where} path {path} has no files yet; add schema = ...")
        with pa.memory_map(files[0]) as source, pa.ipc.open_file(source) as file:
            fields = [f"`{field.name}` {spark_type(field.type)}" for field in file.schema]
    except (OSError, pa.ArrowException, NeedsSparkError) as error:
        raise SourceError(f"{where} {path} is not a directory of Arrow IPC files: {error}") from None
    schema = StructType.fromDDL(", ".join(fields))
    assert isinstance(schema, StructType)
    return schema
