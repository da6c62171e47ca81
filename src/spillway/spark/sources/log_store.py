"""Where Spark keeps its own streaming log: below the query's checkpoint, written by Hadoop's file systems.

A store that Spillway reaches through pyarrow may be unknown to Hadoop. This is checked before anything is
written: otherwise Spark would fail when the checkpoint's identity, its owners and the sink already exist.
"""

import json

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spillway.errors import RESTORE, CheckpointError, StateError
from spillway.state.storage import Storage

SPARK_DIRECTORY = "spark"
"""Spark's own checkpoint, below that of the query."""


def log_address(checkpoint: str) -> str:
    """The directory of Spark's log. Hadoop takes no options in an address, and no credentials."""
    storage = Storage(checkpoint)
    if storage.is_local:
        return f"{checkpoint.rstrip('/')}/{SPARK_DIRECTORY}"
    scheme, _, rest = storage.uri(SPARK_DIRECTORY).partition("?")[0].partition("://")
    return f"{scheme}://{rest.rpartition('@')[2] if scheme == 's3' else rest}"


def require_log_store(spark: SparkSession, checkpoint: str) -> None:
    """Raises `CheckpointError` if Hadoop cannot reach the checkpoint; writes nothing."""
    if Storage(checkpoint).is_local:
        return
    jvm, java = spark.sparkContext._jvm, spark.sparkContext._jsc
    assert jvm is not None and java is not None
    path = jvm.org.apache.hadoop.fs.Path(log_address(checkpoint))
    try:
        path.getFileSystem(java.hadoopConfiguration()).exists(path)
    except Py4JJavaError as error:
        scheme = checkpoint.partition("://")[0]
        cause = " ".join(str(error.java_exception.getMessage()).split())
        raise CheckpointError(
            f"Spark cannot keep its streaming log in {log_address(checkpoint)}: {cause}; use a directory "
            f"that all hosts share, or give Spark a Hadoop file system for {scheme}:// (for s3: the package "
            "hadoop-aws in spark.jars.packages, and spark.hadoop.fs.s3.impl = "
            "org.apache.hadoop.fs.s3a.S3AFileSystem)"
        ) from error


def check_log(storage: Storage) -> None:
    """Raises `StateError` if the identity of Spark's log is damaged; Spark's own error names no file."""
    name = f"{SPARK_DIRECTORY}/metadata"
    if not storage.exists(name):
        return
    try:
        is_whole = "id" in json.loads(storage.read(name).to_pybytes())
    except (ValueError, TypeError):
        is_whole = False
    if not is_whole:
        raise StateError(f"{storage.uri(name)}, a file of Spark's log, is corrupted; {RESTORE}")
