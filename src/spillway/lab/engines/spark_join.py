"""Spark's own chained stream-stream join of the benchmark's files.

A program (see `process`). The settings are those a careful engineer would choose on one machine from Spark's
documentation: as many shuffle partitions as cores (each is a state store), a large heap, no progress bar or
web server. The same query runs once over other files before the clock starts, so neither class loading nor
code generation is counted; the state of earlier runs is released before each run.

`tuned` also gives Spark what Spillway uses for its own sessions: checkpoint files that are written without
shell programs and checksum files, and a small Hadoop configuration. RocksDB has that too, with changelog
checkpoints and join state format 4 (28 s where format 2 took 33 s and 3 took 44 s, one run each at 60,000
rows per stream on a busy machine).

Known limit: the heap is a fixed 12 GiB, and the JVM collects lazily, so a part of its peak is garbage.
"""

import argparse
import os
import sys
import time
from itertools import accumulate
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.lab.engines.data import (
    HELD_FOR_LONG,
    SHAPES,
    WARM_UP_ROWS,
    JoinShape,
    fresh,
    parquet_row_count,
    write_warm_up,
)
from spillway.lab.engines.peers import STORES, Store
from spillway.lab.engines.process import serve
from spillway.lab.engines.processor_time import ProcessorTime
from spillway.lab.engines.result import PeerResult
from spillway.spark.jvm import (
    CHECKPOINT_FILES,
    CHECKPOINT_FILES_BY_RENAME,
    HADOOP_WITHOUT_YARN,
    find_java,
    without_checksum_files,
)

_STORES = "org.apache.spark.sql.execution.streaming.state"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SETTINGS = {
    "spark.driver.memory": "12g",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    **HELD_FOR_LONG,
}
TUNED = {CHECKPOINT_FILES: CHECKPOINT_FILES_BY_RENAME, **HADOOP_WITHOUT_YARN}
STORE_SETTINGS: dict[Store, dict[str, str]] = {
    "default": {_PROVIDER: f"{_STORES}.HDFSBackedStateStoreProvider"},
    "tuned": {_PROVIDER: f"{_STORES}.HDFSBackedStateStoreProvider", **TUNED},
    "rocksdb": {
        **TUNED,
        _PROVIDER: f"{_STORES}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": "4",
    },
}
ENGINES = {store: engine for engine, store in STORES.items()}


def start_session(store: Store, cores: int) -> SparkSession:
    """A separate session for the peer, without any of Spillway's settings."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(find_java(os.environ).home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {**SETTINGS, **STORE_SETTINGS[store], "spark.sql.shuffle.partitions": str(cores)}
    builder = SparkSession.builder.master(f"local[{cores}]").appName(ENGINES[store])
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if store != "default":
        without_checksum_files(spark)
    return spark


def forget_state(spark: SparkSession) -> None:
    """Release the state of ended queries; Spark would keep it in its heap for a minute."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    stores = getattr(getattr(jvm, f"{_STORES}.StateStore$"), "MODULE$")
    stores.stop()
    jvm.java.lang.System.gc()


def joined(spark: SparkSession, shape: JoinShape, data: Path, *, free_run: bool) -> DataFrame:
    """The view: inner joins without watermarks, so state is kept forever, as ours is."""
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
    processor_time, began, wall = ProcessorTime(), time.perf_counter(), time.time()
    query = writer.start()
    finished = _await(query, limit_seconds)
    seconds, cpu_seconds = time.perf_counter() - began, processor_time.seconds()
    if not finished:
        query.stop()
    progress = [each for each in query.recentProgress if each.numInputRows > 0]
    return PeerResult(
        engine=engine,
        rows_in=sum(each.numInputRows for each in progress),
        results=parquet_row_count(out / "results") if finished else 0,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        epoch_seconds=tuple(each.durationMs["triggerExecution"] / 1000 for each in progress),
        finished=finished,
        note="" if finished else f"stopped after {limit_seconds:g} s",
        progress=_progress(out / "results", wall),
        output=str(out / "results") if finished else "",
    )


def _progress(results: Path, began: float) -> tuple[tuple[float, int], ...]:
    """Results over time, by the modification time of each file, a moment before its batch is committed."""
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
    parser.add_argument("--warm-up-rows", type=int, default=WARM_UP_ROWS, help="0: none")
    arguments = parser.parse_args()
    store: Store = arguments.store
    shape = SHAPES[arguments.shape]
    spark = start_session(store, arguments.cores)
    if arguments.warm_up_rows:
        warm_up = arguments.out / "warm-up"
        write_warm_up(shape, warm_up, arguments.warm_up_rows)
        run(spark, shape, warm_up, fresh(arguments.out), "warm-up", limit_seconds=None, free_run=False)

    def turn() -> PeerResult:
        if arguments.warm_up_rows:
            forget_state(spark)
        return run(
            spark, shape, arguments.data, fresh(arguments.out), ENGINES[store],
            limit_seconds=arguments.limit_seconds, free_run=arguments.free_run,
        )  # fmt: skip

    serve(turn)
    spark.stop()


if __name__ == "__main__":
    main()
