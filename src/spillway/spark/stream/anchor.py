"""Sticky processors with public API only: a cached one-row-per-processor DataFrame that every epoch joins.

The join is a shuffled hash join whose build side is the anchor's one row per partition, so the epoch's rows
stream through it unsorted and are shuffled once. The joined partition has no place of its own, and Spark
runs its task on the executor that caches the anchor's block. Invariant: partition number and processor
number are the same, because labels are chosen so that Spark's hash partitioning is a bijection on them.

If an executor dies, Spark computes its blocks again on other executors: those processors move, once, and
the others keep theirs. Known limits: in the epoch of the loss Spark may run a surviving processor on another
executor of the same host, because the lost tasks have no preference and the locality wait is then skipped;
and the anchor is not balanced again when a replacement arrives, so after several losses one executor may
have all processors. A union with the anchor would be simpler, but Spark keeps only the host of a block there.
"""

import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.errors import SessionError
from spillway.spark.jvm import count_executors
from spillway.spark.stream.every_executor import wait_for_wave
from spillway.spark.worker import executor_name

BUILD_ATTEMPTS = 40
_LABEL_SEARCH = 64


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where the processors of a query run."""

    COLUMN: ClassVar[str] = "p"

    frame: DataFrame
    labels: tuple[int, ...]
    """The label of each processor."""
    executors: tuple[str, ...]
    """The executor of each processor when the anchor was built, as host:process."""

    def attach(self, rows: DataFrame, label: Column) -> DataFrame:
        """The rows, each in the partition of its processor's label and on its executor."""
        routed = rows.withColumn(self.COLUMN, label).repartition(len(self.labels), self.COLUMN)
        return routed.join(self.frame.hint("shuffle_hash"), self.COLUMN).drop(self.COLUMN)

    def no_rows(self) -> DataFrame:
        """An empty partition for each processor, on its executor."""
        return self.frame.where(F.col(self.COLUMN) < 0)

    def release(self) -> None:
        self.frame.unpersist()


def build_anchor(spark: SparkSession, processors: int, executors: int) -> Anchor:
    """An anchor whose processors are spread as evenly over the executors as they go."""
    labels = _labels(spark, processors)
    _warm(spark, executors)
    allowed = -(-processors // executors)
    seen: Counter[str] = Counter()
    for _ in range(BUILD_ATTEMPTS):
        frame = _frame(spark, labels).persist()
        places = _places(frame, processors)
        seen = Counter(places)
        if max(seen.values()) <= allowed and len(seen) == min(executors, processors):
            return Anchor(frame, labels, places)
        frame.unpersist(blocking=True)
    raise SessionError(
        f"{processors} processors could not be spread over {executors} executors (last: {dict(seen)}); "
        "check that all executors have free cores"
    )


def _labels(spark: SparkSession, processors: int) -> tuple[int, ...]:
    """For each partition a label that Spark's hash partitioning sends there."""
    candidates = spark.range(processors * _LABEL_SEARCH).select(F.col("id").cast("int").alias("label"))
    partition = F.pmod(F.hash("label"), F.lit(processors)).alias("partition")
    found = {row["partition"]: row["label"] for row in candidates.select("label", partition).collect()}
    if len(found) != processors:
        raise SessionError(f"no labels found for {processors} processors; use fewer")
    return tuple(found[partition] for partition in range(processors))


def _warm(spark: SparkSession, executors: int) -> None:
    """Start a Python worker everywhere, which takes seconds that would unbalance the build."""
    spark.range(0, executors * 2, 1, executors * 2).mapInArrow(_where, _PLACE).collect()


def _frame(spark: SparkSession, labels: tuple[int, ...]) -> DataFrame:
    rows = spark.createDataFrame([(label,) for label in labels], f"{Anchor.COLUMN} int")
    return rows.repartition(len(labels), Anchor.COLUMN)


def _places(frame: DataFrame, processors: int) -> tuple[str, ...]:
    found = {row["partition"]: row["executor"] for row in frame.mapInArrow(_where, _PLACE).collect()}
    return tuple(found[processor] for processor in range(processors))


_PLACE = "partition int, executor string"


def _where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a task: its partition and its executor, at the end of the present wave or the next."""
    for _ in batches:
        pass
    context = TaskContext.get()
    assert context is not None
    wait_for_wave()
    place = f"{socket.gethostname()}:{executor_name()}"
    yield pa.RecordBatch.from_arrays(
        [pa.array([context.partitionId()], pa.int32()), pa.array([place])], names=["partition", "executor"]
    )


class Anchors:
    """Several executors need an anchor; one reaches its whole memory tier from anywhere."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._executors = count_executors(spark)
        self._anchor: Anchor | None = None
        self._prepared: Anchor | None = None

    def prepare(self, processors: int) -> None:
        """Build another anchor beside running epochs, if one is needed: the first that uses it would wait.

        To start Python workers in advance does not help: such tasks take those that wait for the next epoch.
        """
        if self._executors > 1 and (self._anchor is None or len(self._anchor.labels) != processors):
            self._prepared = build_anchor(self._spark, processors, self._executors)

    def of(self, processors: int) -> Anchor | None:
        """The anchor for this many processors; each number has its own, built when it is needed."""
        if self._executors < 2:
            return None
        if self._anchor is None or len(self._anchor.labels) != processors:
            prepared, self._prepared = self._prepared, None
            fits = prepared is not None and len(prepared.labels) == processors
            built = prepared if fits else build_anchor(self._spark, processors, self._executors)
            self.release()
            self._anchor = built
        return self._anchor

    def release(self) -> None:
        for anchor in (self._anchor, self._prepared):
            if anchor is not None:
                anchor.release()
        self._anchor = self._prepared = None
