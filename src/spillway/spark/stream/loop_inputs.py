"""Which queries the file loop can run: all inputs are files, listed by options that are understood here.

Each input is one file stream with stateless operators over it. Anything else is left to Structured Streaming:
`listed_inputs` gives None, and the reason is logged.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyarrow import fs as arrow_fs
from pyspark.sql import DataFrame, SparkSession

from spillway.errors import SourceError
from spillway.job import format_options
from spillway.manager.files import (
    LISTING_OPTIONS,
    ArrowTree,
    DeltaFiles,
    FileTree,
    ListedInput,
    ListingOptions,
    LocalTree,
    has_metadata_log,
    milliseconds,
    read_options,
)
from spillway.plan.operators import InputPlan
from spillway.spark.jvm import elements
from spillway.spark.sources import FILE_FORMATS, NATIVE_FORMATS, FileInput
from spillway.spark.stream.run_ahead import STATELESS
from spillway.state.storage import Storage

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_LOG = logging.getLogger(__name__)
V1_SOURCES = "spark.sql.sources.useV1SourceList"
LISTING_SETTINGS = {
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
}
"""Settings that would change what is listed, with the values that are understood."""
MISSING_FILES = "spark.sql.files.ignoreMissingFiles"
METADATA_COLUMN = "_metadata"
ONE_CHILD = STATELESS - {"Union"}


class _LeftToSparkError(Exception):
    """Why a query is run by Structured Streaming."""


def listed_inputs(
    spark: SparkSession,
    inputs: Sequence[InputPlan],
    frames: Mapping[str, DataFrame],
    relations: Sequence[FileInput],
    trigger: str | None,
    storage: Storage,
) -> list[ListedInput] | None:
    """The inputs as the loop lists them, one per relation; None if Structured Streaming has to read them."""
    try:
        if trigger is not None:
            _require_duration(trigger)
        for setting, value in LISTING_SETTINGS.items():
            if (spark.conf.get(setting, value) or "").lower() != value:
                raise _LeftToSparkError(f"{setting} is set")
        for name in {input_.source: None for input_ in inputs}:
            _require_one_file_stream(name, frames[name])
        return [_listed(spark, relation, storage) for relation in relations]
    except _LeftToSparkError as reason:
        native = next((relation for relation in relations if relation.format in NATIVE_FORMATS), None)
        if native is not None:
            raise SourceError(
                f"[sources.{native.name}] has format {native.format}, which needs a view over files; "
                f"but {reason}; read that source apart, or as Parquet"
            ) from None
        _LOG.info("Structured Streaming reads the input: %s", reason)
        return None


def _require_duration(trigger: str) -> None:
    try:
        milliseconds(trigger)
    except ValueError:
        raise _LeftToSparkError(f"the trigger {trigger} is not one length of time") from None


def _require_one_file_stream(name: str, frame: DataFrame) -> None:
    plan: JavaObject = frame._jdf.queryExecution().analyzed()
    while (kind := plan.getClass().getSimpleName()) in ONE_CHILD:
        (plan,) = elements(plan.children())
    if kind != "StreamingRelation":
        raise _LeftToSparkError(f"source {name} has {kind}")
    if any(column.name() == METADATA_COLUMN for column in elements(plan.output())):
        raise _LeftToSparkError(f"source {name} reads metadata of its files")


def _listed(spark: SparkSession, relation: FileInput, storage: Storage) -> ListedInput:
    where = f"source {relation.name}"
    if relation.format == "delta":
        return _delta(relation, storage)
    v1 = (spark.conf.get(V1_SOURCES) or "").lower().split(",")
    is_read = relation.format in FILE_FORMATS and relation.format in v1
    if not is_read and relation.format not in NATIVE_FORMATS:
        raise _LeftToSparkError(f"{where} has format {relation.format}")
    unknown = sorted(set(relation.options) - LISTING_OPTIONS - format_options(relation.format))
    if unknown:
        raise _LeftToSparkError(f"{where} has the options {', '.join(unknown)}")
    options = read_options({**relation.options, "path": _qualified(spark, relation.options.get("path", ""))})
    if options is None:
        raise _LeftToSparkError(f"{where} has options that only Spark can read")
    tree = _tree(options)
    if has_metadata_log(options, tree):
        raise _LeftToSparkError(f"{where} was written by a stream of Spark")
    may_miss = relation.options.get("ignoremissingfiles") or spark.conf.get(MISSING_FILES, "false") or ""
    return ListedInput(relation.name, relation.format, options, tree, may_miss.lower() == "true")


def _delta(relation: FileInput, storage: Storage) -> ListedInput:
    others = sorted(set(relation.options) - {"path", "maxfilespertrigger", "maxbytespertrigger"})
    options = read_options(relation.options)
    if others or options is None:
        raise SourceError(
            f"[sources.{relation.name}] has options that Delta tables do not have here: "
            f"{', '.join(others) or 'limits'}; use maxFilesPerTrigger or maxBytesPerTrigger"
        )
    files = DeltaFiles(relation.name, options.path, storage)
    return ListedInput(relation.name, "parquet", options, files, listing=files)


def _qualified(spark: SparkSession, path: str) -> str:
    """The path as Hadoop reads it: in the JVM's directory if it is relative."""
    context: Any = spark.sparkContext
    if "://" in path:
        return path
    if not str(context._jsc.hadoopConfiguration().get("fs.defaultFS")).startswith("file:"):
        raise _LeftToSparkError(f"{path} is in Hadoop's default file system")
    if path.startswith("/"):
        return path
    return f"{context._jvm.java.lang.System.getProperty('user.dir')}/{path}"


def _tree(options: ListingOptions) -> FileTree:
    if options.is_local:
        return LocalTree()
    address = options.path.replace("s3a://", "s3://", 1)
    prefix = options.path.partition("://")[0] + "://"
    try:
        files, _ = arrow_fs.FileSystem.from_uri("/".join(address.split("/")[:3]))
        tree = ArrowTree(files, prefix)
        tree.look([options.path])
    except (OSError, ValueError, ImportError) as error:
        raise _LeftToSparkError(f"pyarrow cannot list {options.path}: {error}") from None
    return tree
