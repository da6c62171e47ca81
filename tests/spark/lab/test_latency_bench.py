"""A tiny run of `bench latency`: files arrive, results are timed and right."""

from spillway.lab.bench import bench_latency


def test_results_of_live_files_are_right_and_timed() -> None:
    said: list[str] = []
    metrics = bench_latency(
        rate=2_000,
        seconds=1.5,
        warm_seconds=1.0,
        interval_ms=100,
        streams=2,
        engines=("spillway",),
        drain_seconds=60.0,
        note=said.append,
        warm_up_rows=1_200,
    )
    assert metrics["finished"] == {"spillway": True}, metrics["notes"]
    assert metrics["results_right"] == {"spillway": True}
    found = metrics["latency"]["spillway"]
    assert 0 < found["p50_seconds"] <= found["p99_seconds"] <= found["most_seconds"] < 60
    assert 0 < found["rows"] < metrics["expected_results"]  # results of the warm-up do not count
    assert metrics["rate"] == 2_000 and metrics["ratio_p50_spark_default"] is None
