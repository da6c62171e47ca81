"""Sticky processors with public API only: a cached one-row-per-processor DataFrame that tasks co-group with.

Spark schedules a task where the cached block of its anchor partition is. Labels are chosen so that Spark's
hash partitioning sends each to a partition of its own, and the anchor is built again until its blocks are
balanced over the executors. If an executor dies, Spark rebuilds its block elsewhere and the processor's
state is read back from the durable runs.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.errors import SessionError
from spillway.spark.processor import executor_name

ATTEMPTS = 40
SPREAD_SECONDS = 0.2
"""Each task of the build takes at least this long, so that no executor runs off with most of them."""
_LABEL_SEARCH = 64


@dataclass(frozen=True, slots=True)
class Anchor:
    COLUMN = "p"

    frame: DataFrame
    labels: tuple[int, ...]
    """The label of each processor."""
    executors: tuple[str, ...]
    """The executor of each processor when the anchor was built."""

    def release(self) -> None:
        self.frame.unpersist()


def build_anchor(spark: SparkSession, processors: int, executors: int) -> Anchor:
    """An anchor whose processors are spread as evenly over the executors as they go."""
    labels = _labels(spark, processors)
    allowed = -(-processors // executors)
    seen: Counter[str] = Counter()
    for _ in range(ATTEMPTS):
        frame = _frame(spark, labels, processors).persist()
        places = _places(frame, labels)
        seen = Counter(places)
        if max(seen.values()) <= allowed and len(seen) == min(executors, processors):
            return Anchor(frame, labels, places)
        frame.unpersist(blocking=True)
    raise SessionError(
        f"{processors} processors could not be spread over {executors} executors (last: {dict(seen)}); "
        "check that all executors have free cores"
    )


def _frame(spark: SparkSession, labels: tuple[int, ...], processors: int) -> DataFrame:
    rows = spark.createDataFrame([(label,) for label in labels], f"{Anchor.COLUMN} int")
    return rows.repartition(processors, Anchor.COLUMN)


def _labels(spark: SparkSession, processors: int) -> tuple[int, ...]:
    """Labels whose hash modulo the number of partitions is a bijection, in the order of the partitions."""
    candidates = spark.range(processors * _LABEL_SEARCH).select(F.col("id").cast("int").alias("label"))
    partition = F.pmod(F.hash("label"), F.lit(processors)).alias("partition")
    rows = candidates.select("label", partition).groupBy("partition").agg(F.min("label").alias("label"))
    found = {row["partition"]: row["label"] for row in rows.collect()}
    if len(found) != processors:
        raise SessionError(f"no labels found for {processors} processors; use fewer")
    return tuple(found[partition] for partition in range(processors))


def _places(frame: DataFrame, labels: tuple[int, ...]) -> tuple[str, ...]:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(SPREAD_SECONDS)
            names = pa.array([executor_name()] * batch.num_rows, pa.string())
            yield pa.RecordBatch.from_arrays([batch.column(0), names], names=["label", "executor"])

    rows = frame.mapInArrow(where, "label int, executor string").collect()
    found = {row["label"]: row["executor"] for row in rows}
    return tuple(found[label] for label in labels)
