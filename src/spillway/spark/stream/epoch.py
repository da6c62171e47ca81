"""One epoch as one Spark job: route the wire rows to their processors, run the tasks, collect commit rows.

On one host any executor reaches the memory tier, so rows go straight to the partition of their processor.
With several executors an anchor (see `anchor`) keeps each processor on its executor.
"""

import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.errors import SessionError
from spillway.model import from_text
from spillway.spark.jvm import first_cause, has_lost_a_task
from spillway.spark.stream.anchor import Anchor, Anchors
from spillway.spark.stream.arrow_tasks import ArrowTasks
from spillway.spark.worker import COMMIT_SCHEMA, all_levels, by_level, by_partition
from spillway.state.graph import (
    Graph,
    LevelMessage,
    TornEpochError,
    consistent_reports,
    fused_levels,
    placement_of,
    remove_exchange,
)
from spillway.state.orders import NO_BOUND, Limits, Orders, Report
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN

_LOG = logging.getLogger(__name__)
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MAX_BATCH_BYTES = 64 << 20
"""The largest bound, and Spark's own default."""
UNBOUNDED = (1 << 31) - 1
"""Spark's word for no bound: batches end after so many rows only. With one it adds up the sizes of all
vectors after every row, which took twice as long as to fill them."""
TREE_ATTEMPTS = 4
"""How often an epoch of a tree is run at most; Spark's own default for a task."""


class JvmCache:
    """JVM values reused across epochs; each saves a Py4J call."""

    def __init__(self, spark: SparkSession) -> None:
        self.tasks = ArrowTasks(spark, COMMIT_SCHEMA)
        self.parallelism = spark.sparkContext.defaultParallelism
        self.columns: list[str] = []
        """Of the wire rows."""
        self.batch_bytes: int | None = None
        self.route: tuple[tuple[int, ...], Column] | None = None
        """Where each group goes, and that as an expression."""


@dataclass(frozen=True, slots=True)
class SparkEpoch:
    """Executes epochs of one query; `batch` is the wire rows of the epoch, None if there are none."""

    spark: SparkSession
    graph: Graph
    anchors: Anchors
    cache: JvmCache
    batch: DataFrame | None = None

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        self._bound_batches(batch_bytes(part.limits for part in orders))
        if not self.graph.is_one:
            return self._levels(self.graph, orders)
        return [from_text(Report, row["report"]) for row in self.job(orders).collect()]

    def job(self, orders: Sequence[Orders]) -> DataFrame:
        """The epoch as a plan: one partition per processor in, one commit row of each out."""
        anchor = self.anchors.of(len(orders))
        frame = self._direct(orders) if anchor is None else self._anchored(anchor, orders)
        columns = None if self.batch is None else self._columns(self.batch)
        graph, tasks = self.graph, self.cache.tasks
        if graph.is_one:
            return tasks.over(frame, by_partition(orders, graph.operators[0]), columns)
        first, *later = fused_levels(orders, graph)
        if later and anchor is None and len(orders) <= self.cache.parallelism:
            return tasks.over(frame, all_levels(orders, graph, uuid.uuid4().hex), columns, barrier=True)
        frame = tasks.over(frame, by_level(orders, graph, first), columns)
        for levels in later:
            frame = self._sent(frame, anchor, len(orders))
            frame = tasks.over(frame, by_level(orders, graph, levels))
        return frame

    def _columns(self, batch: DataFrame) -> list[str]:
        if not self.cache.columns:
            self.cache.columns = batch.columns
        return self.cache.columns

    def _levels(self, tree: Graph, orders: Sequence[Orders]) -> list[Report]:
        """Run the epoch again if its parts rest on different attempts, or if one of its tasks was lost.

        Nothing of an attempt counts before all its reports are here. What it wrote has names of its own.
        """
        sequence = orders[0].sequence
        try:
            for _ in range(TREE_ATTEMPTS):
                try:
                    return self._attempt(tree, orders)
                except TornEpochError as torn:
                    reason = str(torn)
                except (PySparkException, Py4JError) as error:
                    if not has_lost_a_task(error):
                        raise
                    reason = first_cause(error)
                _LOG.warning("epoch %d is run again: %s", sequence, reason)
            raise SessionError(
                f"epoch {sequence} failed {TREE_ATTEMPTS} times, at last with: {reason} "
                "Nothing of it was committed; find out what ends the workers (memory, for example) in "
                "Spark's log, then run the job again"
            )
        finally:
            remove_exchange(orders[0].state)

    def _attempt(self, tree: Graph, orders: Sequence[Orders]) -> list[Report]:
        rows = self.job(orders).collect()
        return consistent_reports(
            tree, {row["processor"]: from_text(LevelMessage, row["report"]) for row in rows}
        )

    def _sent(self, frame: DataFrame, anchor: Anchor | None, processors: int) -> DataFrame:
        """Each message at the processor that it is for."""
        if anchor is None:
            return frame.repartitionById(processors, F.col("processor"))
        labels = ",".join(map(str, anchor.labels))
        return anchor.attach(frame, F.expr(f"element_at(array({labels}), processor + 1)"))

    def _bound_batches(self, size: int) -> None:
        """Let Spark hand over rows in Arrow batches of about this many bytes.

        Spark reads the setting when a job starts, from the session of the DataFrame: in foreachBatch that is
        the stream's own copy of the user's session, which ends with it.
        """
        if self.batch is not None and self.cache.batch_bytes != size:
            self.batch.sparkSession.conf.set(BATCH_BYTES, str(size))
            self.cache.batch_bytes = size

    def _direct(self, orders: Sequence[Orders]) -> DataFrame:
        processors = len(orders)
        if self.batch is None:
            return self.spark.range(0, processors, 1, processors).where("id < 0")
        # To coalesce the scans to one wave of tasks first made a run a fifth slower (two pairs of runs).
        return self.batch.repartitionById(processors, self._route(placement_of(orders)))

    def _anchored(self, anchor: Anchor, orders: Sequence[Orders]) -> DataFrame:
        if self.batch is None:
            return anchor.no_rows()
        targets = tuple(anchor.labels[processor] for processor in placement_of(orders))
        return anchor.attach(self.batch, self._route(targets))

    def _route(self, targets: tuple[int, ...]) -> Column:
        if self.cache.route is None or self.cache.route[0] != targets:
            self.cache.route = targets, self._routed(targets)
        return self.cache.route[1]

    def _routed(self, targets: tuple[int, ...]) -> Column:
        if len(set(targets)) == 1:
            return F.lit(targets[0])
        group = self.graph.group_sql(TAG_COLUMN, HASH_WIRE_COLUMN)
        # Folded once to an array of numbers; hundreds of them as an expression each took Spark 10 ms longer.
        listed = f"cast(split('{','.join(map(str, targets))}', ',') as array<int>)"
        return F.expr(f"element_at({listed}, {group} + 1)")


def batch_bytes(limits: Iterable[Limits]) -> int:
    """What an arriving batch may take: a round of the processor with the least memory, if any is bounded."""
    least = min(limit.round_bytes for limit in limits)
    return UNBOUNDED if least >= NO_BOUND else min(least, MAX_BATCH_BYTES)
