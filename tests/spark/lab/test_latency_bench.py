"""Tiny live runs of `bench latency`: files arrive while a query runs, results are right and timed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spillway.lab.bench.latency_metrics import LiveTurn, latencies, latency_metrics
from spillway.lab.engines.live import spark_live, spillway_live
from spillway.lab.engines.live.live_run import LiveJob, LiveQuery, run_live
from spillway.lab.engines.live.schedule import Schedule
from spillway.lab.engines.live.waiting_files import expected_sum, write_waiting
from spillway.lab.engines.result_sum import parquet_sum
from spillway.spark.session.session import Session

SCHEDULE = Schedule(streams=2, rows_per_file=100, interval_seconds=0.1, warm_drops=5, drops=15)


def starts(spark: SparkSession, engine: str) -> Callable[..., LiveQuery]:
    if engine == "spillway":
        return partial(spillway_live.start, Session(spark), 2)
    return partial(spark_live.start, spark)


@pytest.mark.parametrize("engine", ["spillway", "spark-default"])
def test_results_of_live_files_are_right_and_timed(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    job = LiveJob("pair", str(tmp_path / "waiting"), SCHEDULE, 0, 60.0)
    write_waiting(tmp_path / "waiting", job.shape, SCHEDULE)
    expected = expected_sum(tmp_path / "waiting", job.shape)
    job = replace(job, expected_results=expected.rows)
    result = run_live(engine, job, tmp_path / "out", starts(spark, engine))
    assert result.finished, result.note
    assert parquet_sum(Path(result.output)) == expected and result.results == expected.rows
    assert result.rows_in == 3_000 and len(result.epoch_seconds) > 0
    found = latencies(Path(result.output), SCHEDULE, job.shape.streams)
    assert all(0 < latency.seconds < 60 for latency in found)
    measured = latency_metrics([LiveTurn(result, tuple(found))], expected)["latency"][engine]
    assert 0 < measured["rows"] < expected.rows  # results of the warm-up do not count


def test_a_run_that_falls_behind_says_how_far_it_came(spark: SparkSession, tmp_path: Path) -> None:
    schedule = replace(SCHEDULE, drops=2, warm_drops=0)
    job = LiveJob("pair", str(tmp_path / "waiting"), schedule, 1_000_000, 0.0)
    write_waiting(tmp_path / "waiting", job.shape, schedule)
    result = run_live("spillway", job, tmp_path / "out", starts(spark, "spillway"))
    assert not result.finished and result.output == ""
    assert "of 1000000 results after" in result.note
