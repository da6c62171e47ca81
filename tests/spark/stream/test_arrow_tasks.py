"""Stages of Python tasks, against PySpark's own `mapInArrow`."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark import BarrierTaskContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from spillway.spark.stream import arrow_tasks
from spillway.spark.stream.arrow_tasks import ArrowTasks, Task

SCHEMA = StructType([StructField("part", LongType()), StructField("sum", LongType())])


def summing(factor: int, ballast: bytes = b"") -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        total = sum(sum(batch.column("a b").to_pylist()) for batch in batches) * factor + len(ballast)
        yield pa.RecordBatch.from_pydict({"part": [context.partitionId()], "sum": [total]})

    return task


@pytest.mark.parametrize("given", [None, ("id", "a b")])
def test_tasks_change_and_the_rest_stays(spark: SparkSession, given: tuple[str, ...] | None) -> None:
    tasks = ArrowTasks(spark, SCHEMA)
    frame = spark.range(0, 10, 1, 2).selectExpr("id", "id * 2 AS `a b`")
    for factor in (1, 3):
        stage = tasks.over(frame, summing(factor), given)
        assert stage.schema == SCHEMA
        assert sorted(stage.collect()) == sorted(frame.mapInArrow(summing(factor), SCHEMA).collect())
        assert sorted(stage.collect()) == [(0, 20 * factor), (1, 70 * factor)]


def test_a_stage_follows_a_stage(spark: SparkSession) -> None:
    tasks = ArrowTasks(spark, SCHEMA)
    first = tasks.over(spark.range(0, 10, 1, 2).selectExpr("id AS `a b`"), summing(1))
    second = first.repartition(1).selectExpr("sum AS `a b`")
    assert tasks.over(second, summing(1)).collect() == [(0, 45)]


def test_tasks_of_a_barrier_run_together(spark: SparkSession) -> None:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        told = BarrierTaskContext.get().allGather("x")
        yield pa.RecordBatch.from_pydict({"part": [0], "sum": [len(told)]})

    frame = spark.range(0, 4, 1, 2)
    assert ArrowTasks(spark, SCHEMA).over(frame, task, barrier=True).collect() == [(0, 2), (0, 2)]


def test_large_functions_are_broadcast(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.range(0, 4, 1, 1).selectExpr("id AS `a b`")
    ballast = bytes(arrow_tasks.MAX_COMMAND_BYTES + 1)
    assert ArrowTasks(spark, SCHEMA).over(frame, summing(1, ballast)).collect() == [(0, 6 + len(ballast))]
    monkeypatch.setattr(arrow_tasks, "MAX_COMMAND_BYTES", 0)
    assert ArrowTasks(spark, SCHEMA).over(frame, summing(1)).collect() == [(0, 6)]
