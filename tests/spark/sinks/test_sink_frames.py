"""Memory and function sinks on a real session: what a user sees through Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spillway.spark.sinks.factory import open_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_memory_shows_committed_epochs_also_after_a_restart(
    spark: "SparkSession", tasks: Any, tmp_path: Path
) -> None:
    def reopened() -> Any:
        sink = open_sink("memory", None, {"name": "seen"}, checkpoint_dir=str(tmp_path), spark=spark)
        sink.prepare(tasks.query_id, tasks.schema)
        return sink

    sink = reopened()
    assert spark.table("seen").collect() == []
    sink.commit(tasks.stage(sink.staging, 0, [[1], [2]]))
    waiting = tasks.stage(sink.staging, 1, [[3]])
    assert sorted(row.id for row in spark.table("seen").collect()) == [1, 2]
    sink.commit(waiting)
    spark.catalog.dropTempView("seen")
    reopened()
    assert sorted(row.id for row in spark.sql("SELECT id FROM seen").collect()) == [1, 2, 3]
    spark.catalog.dropTempView("seen")


def test_function_gets_a_frame_with_the_types_of_the_view(
    spark: "SparkSession", tasks: Any, tmp_path: Path
) -> None:
    seen: list[tuple[int, list[int], str]] = []

    def keep(frame: "DataFrame", sequence: int) -> None:
        seen.append((sequence, sorted(row.id for row in frame.collect()), frame.schema.simpleString()))

    sink = open_sink("function", checkpoint_dir=str(tmp_path), spark=spark, function=keep)
    sink.prepare(tasks.query_id, tasks.schema)
    sink.commit(tasks.stage(sink.staging, 4, [[1], [2, 3]]))
    assert seen == [(4, [1, 2, 3], "struct<id:bigint,name:string>")]


def test_every_type_of_a_view_is_read_as_spark_knows_it(spark: "SparkSession", tmp_path: Path) -> None:
    sink = open_sink("memory", None, {"name": "typed"}, checkpoint_dir=str(tmp_path), spark=spark)
    sink.prepare(
        "q",
        pa.schema(
            [
                ("small", pa.int8()),
                ("price", pa.decimal128(20, 2)),
                ("at", pa.timestamp("us", "UTC")),
                ("wall", pa.timestamp("us")),
                ("tags", pa.large_list(pa.string())),
                ("counts", pa.map_(pa.string(), pa.uint16())),
                ("nested", pa.struct([("x", pa.date32())])),
            ]
        ),
    )
    assert spark.table("typed").schema.simpleString() == (
        "struct<small:tinyint,price:decimal(20,2),at:timestamp,wall:timestamp_ntz,tags:array<string>,"
        "counts:map<string,int>,nested:struct<x:date>>"
    )
    spark.catalog.dropTempView("typed")
