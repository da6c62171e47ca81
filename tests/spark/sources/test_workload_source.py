"""The workload source in Spark: batch limits, the end of the input, replay, agreement with the generator."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.spark.sources.workload import WorkloadSource, register_workload
from spillway.state.rows.group import GROUP_SQL
from spillway.workload.row_slices import partition_values, rows
from spillway.workload.workload import Workload


def run_to_end(spark: SparkSession, out: Path, **options: str) -> StreamingQuery:
    register_workload(spark)
    source = spark.readStream.format("workload").options(**options).load()
    query = (
        source.writeStream.format("parquet")
        .option("path", str(out / "rows"))
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def batch_rows(query: StreamingQuery) -> list[int]:
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows > 0]


def test_available_now_delivers_limited_batches_and_stops(spark: SparkSession, tmp_path: Path) -> None:
    query = run_to_end(
        spark, tmp_path, stream="a", rows="2500", rowsPerTrigger="1000", rowsPerTask="300", seed="7"
    )
    assert batch_rows(query) == [1_000, 1_000, 500]
    got = spark.read.parquet(str(tmp_path / "rows")).orderBy("id").toArrow()
    expected = rows(Workload(seed=7), "a", 0, 2_500)
    for name in ("k", "id", "ts", "p"):
        assert got.column(name).to_pylist() == expected.column(name).to_pylist()


def test_restart_goes_on_at_the_offset(spark: SparkSession, tmp_path: Path) -> None:
    run_to_end(spark, tmp_path, stream="a", rows="1000", rowsPerTrigger="600")
    again = run_to_end(spark, tmp_path, stream="a", rows="1500", rowsPerTrigger="600")
    assert batch_rows(again) == [500]
    ids = spark.read.parquet(str(tmp_path / "rows")).select("id").toArrow().column("id").to_numpy()
    assert np.array_equal(np.sort(ids), np.arange(1_500))


def test_partitions_are_groups_of_sparks_hash(spark: SparkSession) -> None:
    register_workload(spark)
    frame = (
        spark.read.format("workload").options(stream="a", rows="3000", joinRatio="4:1/3,2:1/3,1:1/3").load()
    )
    grouped = frame.selectExpr("id", GROUP_SQL.format(hash="xxhash64(k)", groups=300) + " AS g").orderBy("id")
    partition, _ = partition_values(Workload(), "a", 0, 3_000)
    assert grouped.toArrow().column("g").to_pylist() == partition.tolist()


def test_bad_option_is_named(spark: SparkSession) -> None:
    register_workload(spark)
    with pytest.raises(Exception, match="unknown option 'row'"):
        spark.read.format("workload").options(stream="a", row="5").load()


def test_paced_stream_follows_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("spillway.spark.sources.workload.time.monotonic", lambda: now)
    source = WorkloadSource({"stream": "a", "rate": "50", "paced": "true", "rows": "1000"})
    reader = source.streamReader(None)  # type: ignore[arg-type]
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset({"rows": 400}, limit) == {"rows": 400}
    now = 102.0
    assert reader.latestOffset({"rows": 400}, limit) == {"rows": 500}
    now = 1_000.0
    assert reader.latestOffset({"rows": 500}, limit) == {"rows": 1_000}


def test_endless_stream_has_no_available_now() -> None:
    reader = WorkloadSource({"stream": "a", "rowsPerTrigger": "10"}).streamReader(None)  # type: ignore[arg-type]
    assert reader.latestOffset({"rows": 30}, reader.getDefaultReadLimit()) == {"rows": 40}
    with pytest.raises(Exception, match="no end"):
        reader.prepareForTriggerAvailableNow()
