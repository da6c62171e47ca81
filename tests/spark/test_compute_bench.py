"""`bench compute` on a small query: an engine that fails is reported, and the others are measured."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spillway.bench.compute_figures import AS_WRITTEN, CHOSEN, DUCKDB, compute_figures
from spillway.compute.unit_costs import UnitCosts
from spillway.spark.compute import bench_run
from spillway.spark.compute.bench_run import ComputeBench
from spillway.spark.compute.peer import SparkPeer, noop
from spillway.workload.multi_join import generate_query


def test_a_peer_that_fails_does_not_end_the_benchmark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_run, "REPEATS", 1)
    monkeypatch.setattr(SparkPeer, "run", lambda self, _: noop(self._spark.sql("SELECT * FROM nowhere")))
    bench = ComputeBench(spark, UnitCosts(), tmp_path, (CHOSEN, AS_WRITTEN, DUCKDB))
    one = bench.run(generate_query(3, 2, rows=(100, 150), result_rows=(100, 1_000)))
    assert set(one.seconds) == {CHOSEN, DUCKDB}
    assert one.rows[CHOSEN] == one.rows[DUCKDB] > 0
    assert "nowhere" in one.unfinished[AS_WRITTEN]
    figures = compute_figures([one])
    assert (figures["unfinished"], figures["ratio_spark_as_written"]) == ({AS_WRITTEN: 1}, None)
    assert list(tmp_path.iterdir()) == []
