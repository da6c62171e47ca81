"""`bench compute` on a small query: an engine that fails is reported, and the others are measured."""

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from spillway.compute.unit_costs import UnitCosts
from spillway.errors import ComputeError
from spillway.job.sources import SourceSpec
from spillway.lab.bench import compute_run as bench_run
from spillway.lab.bench.compute_memory import short_memory
from spillway.lab.bench.compute_metrics import AS_WRITTEN, CHOSEN, DUCKDB, compute_figures
from spillway.lab.bench.compute_run import ComputeBench
from spillway.lab.engines.result_sum import query_sum
from spillway.lab.engines.spark_compute import SparkPeer, noop
from spillway.spark.compute.computation import plan_computation
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
    assert one.checksums[CHOSEN] == one.checksums[DUCKDB]
    assert "nowhere" in one.unfinished[AS_WRITTEN]
    figures = compute_figures([one])
    assert (figures["unfinished"], figures["ratio_spark_as_written"]) == ({AS_WRITTEN: 1}, None)
    assert list(tmp_path.iterdir()) == []


def test_a_peer_that_takes_too_long_is_stopped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "SELECT reflect('java.lang.Thread', 'sleep', 100L) AS x FROM range(0, 6000, 1, 2)"
    monkeypatch.setattr(bench_run, "REPEATS", 1)
    peer = SparkPeer(spark, cbo=False)
    bench = ComputeBench(spark, UnitCosts(), tmp_path, (CHOSEN,), limit_seconds=2.0)
    with pytest.raises(ComputeError, match="stopped after 2 s"):
        bench._clocked(lambda: peer.run(slow), peer.cancel)


def test_memory_for_a_third_of_the_hash_tables(spark: SparkSession, tmp_path: Path) -> None:
    query = generate_query(7, 2, rows=(20, 400), result_rows=(200, 2_000))
    query.write(tmp_path / "data")
    specs = {
        one.name: SourceSpec(one.name, "parquet", str(tmp_path / "data" / one.name))
        for one in query.relations
    }
    computation = plan_computation(spark, query.sql, specs)
    short = short_memory(computation, UnitCosts(), tmp_path, 300.0)
    with duckdb.connect() as database:
        for index, one in enumerate(query.relations):
            database.register(one.name, query.table(index))
        answer = query_sum(database, query.sql)
    assert answer == (short.rows, short.checksum)
    assert short.rows > 0
    assert short.statements > 1
    assert 0 < short.table_bytes_peak <= short.memory_bytes
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
