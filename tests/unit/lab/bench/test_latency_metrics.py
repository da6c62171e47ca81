"""Percentiles and latencies of `bench latency`, from made-up runs."""

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.lab.bench.latency_metrics import Latency, LiveTurn, latencies, latency_metrics, percentile
from spillway.lab.engines import ARRIVALS_NAME, VISIBLE_NAME, PeerResult, ResultSum, Schedule


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 5)), min_size=1),
    st.sampled_from((0.01, 0.5, 0.99, 1.0)),
)
def test_percentiles_are_those_of_single_results(counts: list[tuple[float, int]], share: float) -> None:
    single = sorted(seconds for seconds, count in counts for _ in range(count))
    expected = single[max(1, math.ceil(share * len(single))) - 1]
    assert percentile([Latency(*pair) for pair in counts], share) == expected


def test_no_results_have_no_percentile() -> None:
    assert percentile([], 0.5) is None


def test_a_result_has_arrived_with_its_last_file(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    files = {"one.parquet": ([0, 12], [3, 25]), "two.parquet": ([25, 7], [29, 39])}
    for name, (a, b) in files.items():
        pq.write_table(pa.table({"a_id": a, "b_id": b}), results / name)
    arrivals = {"a": [100.0, 101.0, 102.0, 103.0], "b": [100.1, 101.1, 101.9, 103.1]}
    (tmp_path / ARRIVALS_NAME).write_text(json.dumps(arrivals))
    visible = {str(results / "one.parquet"): 104.0, str(results / "two.parquet"): 105.0}
    (tmp_path / VISIBLE_NAME).write_text(json.dumps(visible))
    schedule = Schedule(streams=2, rows_per_file=10, interval_seconds=1.0, warm_drops=1, drops=4)
    found = sorted(latencies(results, schedule, ("a", "b")))
    # ids 12 and 25 came with drop 2, 25 and 29 too, 7 and 39 with drop 3; 0 and 3 are of the warm-up
    assert found == [
        (pytest.approx(2.0), 1), (pytest.approx(2.1), 1), (pytest.approx(3.1), 1)
    ]  # fmt: skip


def turn(engine: str, p50: float, p99: float, checksum: str = "ab") -> LiveTurn:
    result = PeerResult(engine, 10, 100, 1.0, (0.1, 0.3, 0.2), checksum=checksum)
    return LiveTurn(result, (Latency(p50, 98), Latency(p99, 2)))


def test_medians_of_turns_count() -> None:
    turns = [
        turn("spillway", 0.2, 0.5), turn("spark-default", 16.0, 20.0),
        turn("spark-default", 2.0, 3.0, "ac"), turn("spillway", 0.4, 0.6),
        turn("spillway", 0.1, 0.4), turn("spark-default", 1.0, 2.0),
    ]  # fmt: skip
    metrics = latency_metrics(turns, ResultSum(100, "ab"))
    assert metrics["latency"]["spillway"] == {
        "p50_seconds": 0.2, "p99_seconds": 0.5, "rows": 300,
        "all_p50_seconds": [0.2, 0.4, 0.1], "all_p99_seconds": [0.5, 0.6, 0.4],
    }  # fmt: skip
    assert metrics["latency"]["spark-default"]["p50_seconds"] == 2.0
    assert metrics["ratio_p50_spark_default"] == pytest.approx(10)  # of 80, 5 and 10
    assert metrics["ratio_p99_spark_default"] == pytest.approx(5)  # of 40, 5 and 5
    assert metrics["ratio_p50_flink"] is None
    assert metrics["p99_below_spark_p50"] is True
    assert metrics["results_right"] == {"spillway": True, "spark-default": False}
    assert metrics["batches"]["spillway"] == [3, 3, 3]
    assert metrics["batch_seconds"]["spillway"] == [0.2, 0.2, 0.2]


def test_an_engine_that_fell_behind_has_no_latency() -> None:
    behind = PeerResult("spark-default", 10, 40, 9.0, finished=False, note="40 of 100 results after 9 s")
    turns = [turn("spark-default", 1.0, 2.0), LiveTurn(behind, ()), turn("spillway", 2.0, 3.0)]
    metrics = latency_metrics(turns, ResultSum(100, "ab"))
    assert set(metrics["latency"]) == {"spillway"} and metrics["ratio_p50_spark_default"] is None
    assert metrics["p99_below_spark_p50"] is None
    assert metrics["notes"] == {"spark-default": "40 of 100 results after 9 s"}
    assert metrics["results_right"] == {"spark-default": False, "spillway": True}
    assert metrics["finished"] == {"spark-default": False, "spillway": True}
