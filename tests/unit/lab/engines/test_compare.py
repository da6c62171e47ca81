"""The metrics of a comparison, from made-up results."""

from dataclasses import replace

import pytest

from spillway.lab.engines.result import PeerResult, compare, epoch_growth, median_run


def result(engine: str, seconds: float, pss: int | None = 100, **more: object) -> PeerResult:
    values: dict[str, object] = {"rows_in": 1_000, "results": 7, "peak_rss_bytes": 400, **more}
    return PeerResult(engine, seconds=seconds, peak_pss_bytes=pss, **values)  # type: ignore[arg-type]


def test_all_ratios() -> None:
    metrics = compare(
        [
            result("spillway", 10, 50, epoch_seconds=(9.0,) * 5 + (1.0,) * 5 + (3.0,) * 5 + (1.2,) * 5),
            result("spark-default", 50, 200),
            result("spark-rocksdb", 50, rows_in=100, finished=False, results=0),
            result("duckdb", 1),
        ]
    )
    assert metrics["rows_per_s"] == {
        "spillway": 100,
        "spark-default": 20,
        "spark-rocksdb": 2,
        "duckdb": 1_000,
    }
    assert metrics["ratio_spark_default"] == 5
    assert metrics["ratio_spark_rocksdb"] == 50
    assert metrics["ratio_duckdb"] == 0.1
    assert metrics["memory_ratio_spark_default"] == 0.25
    assert metrics["epoch_growth"] == pytest.approx(1.2)
    assert metrics["results_agree"] is True


def test_ratios_of_turns_are_medians_over_rounds() -> None:
    own = result("spillway", 2, all_seconds=(1.0, 2.0, 4.0))
    peer = result("spark-default", 8, all_seconds=(5.0, 8.0, 12.0))
    assert compare([own, peer])["ratio_spark_default"] == 4
    once = replace(peer, all_seconds=(5.0,), finished=False)
    assert compare([own, once])["ratio_spark_default"] == 4  # 8 s against 2 s
    assert compare([own, replace(peer, all_seconds=(9.0, 8.0, 12.0))])["ratio_spark_default"] == 4
    assert compare([own, replace(peer, all_seconds=(9.0, 10.0, 12.0))])["ratio_spark_default"] == 5


def test_missing_or_failed_peers_have_no_ratio() -> None:
    metrics = compare(
        [result("spillway", 10), PeerResult("spark-default", 0, 0, 0.0, finished=False, note="died")]
    )
    assert metrics["ratio_spark_default"] is None
    assert metrics["ratio_duckdb"] is None
    assert metrics["epoch_growth"] is None
    assert metrics["notes"] == {"spark-default": "died"}


def test_disagreement_is_told() -> None:
    assert compare([result("spillway", 1), result("duckdb", 1, results=8)])["results_agree"] is False
    other = [result("spillway", 1, checksum="a"), result("duckdb", 1, checksum="b")]
    assert compare(other)["results_agree"] is False
    assert compare(other)["checksums"] == {"spillway": "a", "duckdb": "b"}
    assert compare([other[0], result("duckdb", 1)])["results_agree"] is True
    runs = median_run([other[0], result("spillway", 2, checksum="b"), result("spillway", 3, checksum="a")])
    assert compare([runs, result("duckdb", 1, checksum="b")])["results_agree"] is False
    assert compare([])["results_agree"] is False


def test_memory_compares_like_with_like() -> None:
    metrics = compare([result("spillway", 1, 50, peak_rss_bytes=300), result("spark-default", 1, None)])
    assert metrics["memory_ratio_spark_default"] == 0.75


def test_epoch_growth_needs_ten_epochs() -> None:
    assert epoch_growth([1.0] * 9) is None
    assert epoch_growth([1.0] * 5 + [2.0] * 5) == 1


def test_the_median_run_counts_and_one_that_failed_before_all() -> None:
    runs = [result("spark-default", seconds) for seconds in (9.0, 3.0, 5.0, 7.0)]
    assert median_run(runs[:3]).seconds == 5.0
    assert median_run(runs).seconds == 7.0
    peaks = median_run([result("x", 1, 70, peak_rss_bytes=80), result("x", 2, None, peak_rss_bytes=90)])
    assert (peaks.peak_pss_bytes, peaks.peak_rss_bytes) == (70, 90)
    failed = result("spark-default", 4.0, finished=False)
    chosen = median_run([*runs, failed])
    assert not chosen.finished and chosen.all_seconds == (9.0, 3.0, 5.0, 7.0, 4.0)
