"""One epoch as one Spark job: route the wire rows to their processors, run the tasks, collect commit rows.

On one host any executor reaches the memory tier, so rows go straight to the partition of their processor.
With several executors an anchor (see `anchor`) keeps each processor on its executor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.spark.anchor import Anchor
from spillway.spark.processor import COMMIT_SCHEMA, by_label, by_partition
from spillway.state.group import GROUP_SQL
from spillway.state.operator import HASH_WIRE_COLUMN, JoinOperator
from spillway.state.orders import Orders, Report

_PROCESSOR = "p"


@dataclass(frozen=True, slots=True)
class SparkEpoch:
    """Executes epochs of one query; `batch` is the wire rows of the epoch, None if there are none."""

    spark: SparkSession
    operator: JoinOperator
    placement: tuple[int, ...]
    anchor: Anchor | None
    batch: DataFrame | None = None

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        rows = (self._anchored if self.anchor else self._direct)(orders).collect()
        return [Report.from_json(row["report"]) for row in rows]

    def _direct(self, orders: Sequence[Orders]) -> DataFrame:
        task = by_partition(orders, self.operator)
        if self.batch is None:
            frame = self.spark.range(0, len(orders), 1, len(orders)).where("id < 0")
        else:
            routed = self.batch.withColumn(_PROCESSOR, self._route(self.placement))
            frame = routed.repartitionById(len(orders), F.col(_PROCESSOR)).drop(_PROCESSOR)
        return frame.mapInArrow(task, COMMIT_SCHEMA)

    def _anchored(self, orders: Sequence[Orders]) -> DataFrame:
        assert self.anchor is not None
        labels = self.anchor.labels
        task = by_label({labels[one.processor]: one for one in orders}, self.operator)
        anchor = self.anchor.frame.groupBy(Anchor.COLUMN)
        if self.batch is None:
            frame = self.anchor.frame.where(F.col(Anchor.COLUMN) < 0)
        else:
            route = self._route(tuple(labels[processor] for processor in self.placement))
            frame = self.batch.withColumn(Anchor.COLUMN, route)
        return frame.groupBy(Anchor.COLUMN).cogroup(anchor).applyInArrow(task, COMMIT_SCHEMA)

    def _route(self, targets: tuple[int, ...]) -> Column:
        group = GROUP_SQL.format(hash=HASH_WIRE_COLUMN, groups=len(targets))
        if len(set(targets)) == 1:
            return F.lit(targets[0])
        return F.expr(f"element_at(array({','.join(map(str, targets))}), {group} + 1)")
