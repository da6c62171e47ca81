"""Spark's own chained stream-stream join of the benchmark's files, tuned in its favour.

A program (see `engine_process`). The settings are those a careful engineer would choose
on one machine: as many shuffle partitions as cores (each is a state store), a large heap, no progress bar
or web server, the same quick writing of checkpoint files and the same small Hadoop configuration as Spillway.
The same query runs once over other files before the clock starts, so that neither class loading nor code
generation is counted.
RocksDB: changelog checkpoints, and join state format 4 (28 s where format 2 took 33 s and 3 took 44 s, one
run each at 60,000 rows per stream on a busy machine).

Known limit: the heap is a fixed 12 GiB, and the JVM collects lazily, so a part of its peak is garbage.
"""

import argparse
import os
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.bench.engine_process import serve
from spillway.bench.join_data import (
    HELD_FOR_LONG,
    SHAPES,
    WARM_UP_ROWS,
    JoinShape,
    fresh,
    parquet_row_count,
    write_warm_up,
)
from spillway.bench.peer_result import PeerResult
from spillway.bench.peers import STORES, Store
from spillway.spark.java import find_java
from spillway.spark.session import without_checksum_files
from spillway.spark.session_defaults import CHECKPOINT_FILES, CHECKPOINT_FILES_BY_RENAME, HADOOP_WITHOUT_YARN

_STORES = "org.apache.spark.sql.execution.streaming.state"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SETTINGS = {
    "spark.driver.memory": "12g",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    CHECKPOINT_FILES: CHECKPOINT_FILES_BY_RENAME,
    **HADOOP_WITHOUT_YARN,
    **HELD_FOR_LONG,
}
STORE_SETTINGS: dict[Store, dict[str, str]] = {
    "default": {_PROVIDER: f"{_STORES}.HDFSBackedStateStoreProvider"},
    "rocksdb": {
        _PROVIDER: f"{_STORES}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": "4",
    },
}
ENGINES = {store: engine for engine, store in STORES.items()}


def start_session(store: Store, cores: int) -> SparkSession:
    """A session of its own for the peer, with nothing of Spillway's in it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(find_java(os.environ).home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {**SETTINGS, **STORE_SETTINGS[store], "spark.sql.shuffle.partitions": str(cores)}
    builder = SparkSession.builder.master(f"local[{cores}]").appName(ENGINES[store])
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    without_checksum_files(spark)
    return spark


def joined(spark: SparkSession, shape: JoinShape, data: Path, *, free_run: bool) -> DataFrame:
    """The view: inner joins, without watermarks, so that state is kept for ever, as ours is."""
    for stream in shape.streams:
        _stream(spark, shape, data / stream, free_run).createOrReplaceTempView(stream)
    return spark.sql(shape.view_sql)


def run(
    spark: SparkSession,
    shape: JoinShape,
    data: Path,
    out: Path,
    engine: str,
    *,
    limit_seconds: float | None,
    free_run: bool,
) -> PeerResult:
    """Join all input to Parquet in out/results, or as much of it as the limit allows."""
    view = joined(spark, shape, data, free_run=free_run)
    writer = view.writeStream.format("parquet").outputMode("append").trigger(availableNow=True)
    writer = writer.option("path", str(out / "results")).option("checkpointLocation", str(out / "checkpoint"))
    began, wall = time.perf_counter(), time.time()
    query = writer.start()
    finished = _await(query, limit_seconds)
    seconds = time.perf_counter() - began
    if not finished:
        query.stop()
    progress = [each for each in query.recentProgress if each.numInputRows > 0]
    return PeerResult(
        engine=engine,
        rows_in=sum(each.numInputRows for each in progress),
        results=parquet_row_count(out / "results") if finished else 0,
        seconds=seconds,
        epoch_seconds=tuple(each.durationMs["triggerExecution"] / 1000 for each in progress),
        finished=finished,
        note="" if finished else f"stopped after {limit_seconds:g} s",
        progress=_progress(out / "results", wall),
    )


def _progress(results: Path, began: float) -> tuple[tuple[float, int], ...]:
    """Results over time, by when each file was written: a moment before its batch was committed."""
    written = sorted((file.stat().st_mtime, parquet_row_count(file)) for file in results.glob("*.parquet"))
    totals = accumulate(rows for _, rows in written)
    return tuple((at - began, total) for (at, _), total in zip(written, totals, strict=True))


def _stream(spark: SparkSession, shape: JoinShape, directory: Path, free_run: bool) -> DataFrame:
    reader = spark.readStream.schema(shape.schema_sql)
    if not free_run:
        reader = reader.option("maxFilesPerTrigger", "1")
    return reader.parquet(str(directory))


def _await(query: StreamingQuery, limit_seconds: float | None) -> bool:
    if limit_seconds is None:
        query.awaitTermination()
        return True
    return bool(query.awaitTermination(timeout=max(1, round(limit_seconds))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=tuple(SHAPES), default="join")
    parser.add_argument("--store", choices=tuple(STORE_SETTINGS), default="default")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--limit-seconds", type=float)
    parser.add_argument("--free-run", action="store_true", help="one trigger for all files")
    parser.add_argument("--warm-up-rows", type=int, default=WARM_UP_ROWS)
    arguments = parser.parse_args()
    store: Store = arguments.store
    shape = SHAPES[arguments.shape]
    spark = start_session(store, arguments.cores)
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch)
        write_warm_up(shape, small / "data", arguments.warm_up_rows)
        run(spark, shape, small / "data", small / "out", "warm-up", limit_seconds=None, free_run=False)
    serve(
        lambda: run(
            spark, shape, arguments.data, fresh(arguments.out), ENGINES[store],
            limit_seconds=arguments.limit_seconds, free_run=arguments.free_run,
        )
    )  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
