"""The anchor's plan: one shuffle takes rows to the partition of their processor, whatever the settings."""

import re

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spillway.spark.stream.anchor import Anchor, build_anchor

PROCESSORS = 5  # not the session's number of shuffle partitions


@pytest.fixture
def anchor(spark: SparkSession) -> Anchor:
    built = build_anchor(spark, PROCESSORS, executors=1)
    yield built
    built.release()


def plan_of(frame: DataFrame) -> str:
    """The physical plan, without the plan that once filled the cached anchor."""
    lines = frame._jdf.queryExecution().executedPlan().toString().splitlines()
    relation = next(number for number, line in enumerate(lines) if "InMemoryRelation" in line)
    depth = re.search(r"[A-Z*]", lines[relation]).start()
    for number in range(relation + 1, len(lines)):
        if (found := re.search(r"[A-Z*]", lines[number])) and found.start() <= depth:
            return "\n".join(lines[:relation] + lines[number:])
    return "\n".join(lines[:relation])


def test_rows_are_shuffled_once_and_not_sorted(spark: SparkSession, anchor: Anchor) -> None:
    rows = spark.range(0, 100, 1, 3).withColumn("n", (F.col("id") % PROCESSORS).cast("int"))
    label = F.element_at(F.array(*map(F.lit, anchor.labels)), F.col("n") + 1)
    attached = anchor.attach(rows, label)
    plan = plan_of(attached)
    assert plan.count("Exchange") == 1, plan
    assert "ShuffledHashJoin" in plan
    assert "Sort" not in plan
    places = attached.select("n", F.spark_partition_id().alias("partition")).distinct().collect()
    assert {(row["n"], row["partition"]) for row in places} == {(n, n) for n in range(PROCESSORS)}
    assert attached.columns == ["id", "n"]


def test_an_epoch_without_rows_has_a_partition_for_each_processor(anchor: Anchor) -> None:
    empty = anchor.no_rows()
    assert empty.rdd.getNumPartitions() == PROCESSORS
    assert empty.count() == 0


def test_every_processor_has_a_place(anchor: Anchor) -> None:
    assert len(anchor.executors) == PROCESSORS
    assert len(set(anchor.labels)) == PROCESSORS
    assert len(set(anchor.executors)) == 1
