"""The metrics of `bench spill`, from made-up results and journals."""

from dataclasses import replace
from typing import Any

import pytest

from kit.entries import made_epoch, made_part
from spillway.errors import JobError
from spillway.lab.bench.budget_metrics import cpu_ratio, peak_resident_bytes
from spillway.lab.bench.spill_metrics import (
    cleanup_rows_ratio,
    seconds_to_half,
    spill_metrics,
    spill_pause_share,
    spill_pauses,
)
from spillway.lab.bench.spill_variant import FIFTH, FULL, HALF, SpillVariant, spill_variants
from spillway.lab.engines.result import SPARK_ROCKSDB, PeerResult, median_run
from spillway.manager.journal.entry import EpochEntry, EpochKind
from spillway.manager.spill import Spill

SPILL = Spill(1, 0b1, 60, 200, "test")


def entry(kind: str, total: float, rows: int, results: int, free: float = 0.0, spills: int = 0) -> EpochEntry:
    part = made_part(0, probed_rows=rows, resident_bytes=10 * rows, seconds={"free": free})
    return made_epoch(
        total,
        kind=EpochKind(kind),
        results=results,
        spills=(SPILL,) * spills,
        processors=(part, replace(part, processor=1, probed_rows=0, seconds={})),
    )


EPOCHS = [
    entry("epoch", 1.0, 100, 5),
    entry("epoch", 1.0, 300, 7, free=0.2, spills=2),
    entry("epoch", 2.0, 100, 8, free=0.1, spills=1),
    entry("cleanup", 4.0, 600, 10),
]


def result(engine: str, seconds: float, **more: Any) -> PeerResult:
    return PeerResult(engine, 90, more.pop("results", 30), seconds, **more)


def test_half_is_reached_at_the_first_commit_with_half_of_the_results() -> None:
    progress = ((0.0, 0), (1.0, 4), (2.0, 5), (9.0, 10))
    assert seconds_to_half(progress, 10) == 2.0
    assert seconds_to_half(progress, 11) == 9.0
    assert seconds_to_half(progress, 21) is None
    assert seconds_to_half(((0.0, 0),), 0) is None


def test_pause_is_the_worst_spill_epoch() -> None:
    assert spill_pause_share(EPOCHS) == pytest.approx(0.2)
    assert spill_pause_share(EPOCHS[:1]) is None


def test_each_spill_has_its_pause() -> None:
    parts = (made_part(0, seconds={"free": 0.5}), made_part(1, seconds={"free": 0.02}))
    epoch = made_epoch(2.0, spills=(SPILL,), processors=parts)
    (pause,) = spill_pauses([epoch, replace(epoch, spills=())])
    assert (pause["share"], pause["spilled_bytes"], pause["resident_bytes"]) == (0.01, 60, 200)


def test_clean_up_is_compared_by_driving_rows_per_second() -> None:
    assert cleanup_rows_ratio(EPOCHS) == pytest.approx((600 / 4) / (500 / 4))
    assert cleanup_rows_ratio(EPOCHS[:3]) is None
    assert cleanup_rows_ratio(EPOCHS[3:]) is None


def test_needed_memory_is_the_largest_state_of_a_processor() -> None:
    assert peak_resident_bytes(EPOCHS) == 6_000
    assert peak_resident_bytes([]) == 0


def test_all_metrics() -> None:
    metrics = spill_metrics(
        [
            result(FULL, 10, cpu_seconds=6.0, progress=((4.0, 15), (8.0, 30))),
            result(HALF, 12, cpu_seconds=9.0, progress=((5.0, 14), (9.0, 30))),
            result(FIFTH, 20, progress=((6.0, 10), (20.0, 30))),
            result(SPARK_ROCKSDB, 80, progress=((50.0, 20), (80.0, 30))),
        ],
        {FULL: EPOCHS[:1], HALF: EPOCHS, FIFTH: EPOCHS},
    )
    assert metrics["seconds"] == {FULL: 10, HALF: 12, FIFTH: 20, SPARK_ROCKSDB: 80}
    assert metrics["seconds_to_half"] == {FULL: 4.0, HALF: 9.0, FIFTH: 20.0, SPARK_ROCKSDB: 50.0}
    assert metrics["results_agree"] is True
    assert metrics["ratio_fifth_to_rocksdb"] == 0.25
    assert metrics["spills"] == {FULL: 0, HALF: 3, FIFTH: 3}
    assert metrics["results_runtime"] == {FULL: 5, HALF: 20, FIFTH: 20}
    assert metrics["results_cleanup"] == {FULL: 0, HALF: 10, FIFTH: 10}
    assert metrics["cpu_seconds"] == {FULL: 6.0, HALF: 9.0, FIFTH: None, SPARK_ROCKSDB: None}
    assert metrics["cpu_ratio"] == {HALF: 1.5, FIFTH: None}
    assert metrics["epochs_runtime"] == {FULL: 1, HALF: 3, FIFTH: 3}
    assert metrics["epochs_cleanup"] == {FULL: 0, HALF: 1, FIFTH: 1}
    assert set(metrics["spill_pause_share"]) == set(metrics["cleanup_rows_ratio"]) == {HALF, FIFTH}


def test_a_stopped_peer_counts_with_its_limit_and_a_failed_run_has_no_ratio() -> None:
    stopped = result(SPARK_ROCKSDB, 120, results=0, finished=False, note="stopped after 120 s")
    metrics = spill_metrics([result(FIFTH, 30), stopped], {FIFTH: EPOCHS})
    assert metrics["ratio_fifth_to_rocksdb"] == 0.25
    assert metrics["results_agree"] is True
    assert metrics["notes"] == {SPARK_ROCKSDB: "stopped after 120 s"}
    failed = spill_metrics([result(FIFTH, 30, finished=False), stopped], {})
    assert failed["ratio_fifth_to_rocksdb"] is None
    assert failed["results_agree"] is False


def test_processor_time_of_turns_is_compared_round_by_round() -> None:
    enough = median_run([result(FULL, 1, cpu_seconds=seconds) for seconds in (4.0, 2.0, 8.0)])
    short = median_run([result(HALF, 1, cpu_seconds=seconds) for seconds in (6.0, 4.0, 8.0)])
    assert (enough.cpu_seconds, short.cpu_seconds) == (4.0, 6.0)
    assert cpu_ratio(enough, short) == 1.5  # of 1.5, 2 and 1
    assert cpu_ratio(None, short) is None
    assert cpu_ratio(enough, replace(short, finished=False)) is None
    assert cpu_ratio(replace(enough, cpu_seconds=None, all_cpu_seconds=()), short) is None


def test_variants_are_shares_with_early_and_with_deferred_results() -> None:
    assert [variant.name for variant in spill_variants((2, 5), ())] == [FULL, HALF, FIFTH]
    assert spill_variants((), (5,))[1:] == (SpillVariant("spillway-1/5-deferred", 5, "deferred"),)
    for wrong in ((0,), (2, 2)):
        with pytest.raises(JobError, match="--shares"):
            spill_variants(wrong, ())
