"""One epoch as one Spark job: route the wire rows to their processors, run the tasks, collect commit rows.

On one host any executor reaches the memory tier, so rows go straight to the partition of their processor.
With several executors an anchor (see `anchor`) keeps each processor on its executor.
"""

import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.spark.anchor import Anchor
from spillway.spark.anchors import Anchors
from spillway.spark.processor import COMMIT_SCHEMA, all_levels, by_level, by_partition
from spillway.state.group import GROUP_SQL
from spillway.state.operator import HASH_WIRE_COLUMN, TAG_COLUMN
from spillway.state.orders import NO_BOUND, Limits, Orders, Report
from spillway.state.step import StatefulOperator
from spillway.state.tree_operator import TreeOperator
from spillway.state.tree_step import (
    Delivery,
    TornEpochError,
    agreed,
    fused_levels,
    placement_of,
    remove_parcels,
)

_LOG = logging.getLogger(__name__)
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MAX_BATCH_BYTES = 64 << 20
"""The largest bound, and Spark's own default."""
UNBOUNDED = (1 << 31) - 1
"""Spark's word for no bound: batches end after so many rows only. With one it adds up the sizes of all
vectors after every row, which took twice as long as to fill them."""
TREE_ATTEMPTS = 4
"""How often an epoch of a tree is run at most."""


@dataclass(frozen=True, slots=True)
class SparkEpoch:
    """Executes epochs of one query; `batch` is the wire rows of the epoch, None if there are none."""

    spark: SparkSession
    operator: StatefulOperator
    anchors: Anchors
    batch: DataFrame | None = None

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        with self._bounded_batches(batch_bytes(one.limits for one in orders)):
            if isinstance(self.operator, TreeOperator):
                return self._tree(self.operator, orders)
            return [Report.from_json(row["report"]) for row in self.job(orders).collect()]

    def job(self, orders: Sequence[Orders]) -> DataFrame:
        """The epoch as a plan: one partition per processor in, one commit row of each out."""
        anchor = self.anchors.of(len(orders))
        frame = self._direct(orders) if anchor is None else self._anchored(anchor, orders)
        operator = self.operator
        if not isinstance(operator, TreeOperator):
            return frame.mapInArrow(by_partition(orders, operator), COMMIT_SCHEMA)
        first, *later = fused_levels(orders, operator)
        if later and anchor is None and len(orders) <= self.spark.sparkContext.defaultParallelism:
            task = all_levels(orders, operator, uuid.uuid4().hex)
            return frame.mapInArrow(task, COMMIT_SCHEMA, barrier=True)
        frame = frame.mapInArrow(by_level(orders, operator, first), COMMIT_SCHEMA)
        for levels in later:
            frame = self._delivered(frame, anchor, len(orders))
            frame = frame.mapInArrow(by_level(orders, operator, levels), COMMIT_SCHEMA)
        return frame

    def _tree(self, tree: TreeOperator, orders: Sequence[Orders]) -> list[Report]:
        """An epoch whose parts rest on different attempts of one part has not happened; it is run again."""
        try:
            for attempt in range(1, TREE_ATTEMPTS + 1):
                try:
                    return self._attempt(tree, orders)
                except TornEpochError as torn:
                    if attempt == TREE_ATTEMPTS:
                        raise
                    _LOG.warning("epoch %d is run again: %s", orders[0].sequence, torn)
            raise AssertionError("an epoch ends with its reports or with an error")
        finally:
            remove_parcels(orders[0].state)

    def _attempt(self, tree: TreeOperator, orders: Sequence[Orders]) -> list[Report]:
        rows = self.job(orders).collect()
        return agreed(tree, {row["processor"]: Delivery.from_json(row["report"]) for row in rows})

    def _delivered(self, frame: DataFrame, anchor: Anchor | None, processors: int) -> DataFrame:
        """Each delivery at the processor that it is for."""
        if anchor is None:
            return frame.repartitionById(processors, F.col("processor"))
        labels = ",".join(map(str, anchor.labels))
        return anchor.attach(frame, F.expr(f"element_at(array({labels}), processor + 1)"))

    @contextmanager
    def _bounded_batches(self, size: int) -> Iterator[None]:
        """Let Spark hand over rows in Arrow batches of about this many bytes.

        Spark reads the setting when a job starts, from the session of the DataFrame: in foreachBatch that is
        the stream's own copy of the user's session.
        """
        if self.batch is None:
            yield
            return
        conf = self.batch.sparkSession.conf
        before = conf.get(BATCH_BYTES, None)
        conf.set(BATCH_BYTES, str(size))
        try:
            yield
        finally:
            if before is None:
                conf.unset(BATCH_BYTES)
            else:
                conf.set(BATCH_BYTES, before)

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
        if len(set(targets)) == 1:
            return F.lit(targets[0])
        group = GROUP_SQL.format(hash=HASH_WIRE_COLUMN, groups=len(targets))
        if isinstance(self.operator, TreeOperator):
            groups = self.operator.join_groups
            first = ",".join(str(join * groups) for join, _ in self.operator.tags)
            local = GROUP_SQL.format(hash=HASH_WIRE_COLUMN, groups=groups)
            group = f"element_at(array({first}), {TAG_COLUMN} + 1) + {local}"
        # Folded once to an array of numbers; hundreds of them as an expression each took Spark 10 ms longer.
        listed = f"cast(split('{','.join(map(str, targets))}', ',') as array<int>)"
        return F.expr(f"element_at({listed}, {group} + 1)")


def batch_bytes(limits: Iterable[Limits]) -> int:
    """What an arriving batch may take: a round of the processor with the least memory, if any is bounded."""
    least = min(one.round_bytes for one in limits)
    return UNBOUNDED if least >= NO_BOUND else min(least, MAX_BATCH_BYTES)
