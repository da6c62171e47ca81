"""The figures of a comparison, from the engines' results alone.

Ratios of speed are Spillway over peer (above 1: Spillway is faster); the ratio of memory is Spillway's
peak over the peer's (below 1: Spillway needs less). Of engines that took turns the ratio of speed is the
median over the rounds. A figure whose engine is missing or has none is None,
never 0. An engine that was stopped early counts with the rows it had processed; only engines that
finished must agree on the results: their number, and their checksum in any order.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from spillway.bench.peer_result import PeerResult, results_agree

SPILLWAY = "spillway"
SPARK_DEFAULT = "spark-default"
SPARK_TUNED = "spark-tuned"
SPARK_ROCKSDB = "spark-rocksdb"
DUCKDB = "duckdb"

Figure = float | int | str | bool | None
_STEADY_EPOCHS = slice(5, 10)  # epochs 6-10: after warm-up, before state is large
_LAST_EPOCHS = 5


def compare(results: Iterable[PeerResult]) -> dict[str, Figure | dict[str, Figure]]:
    """The figures that `spillway bench join --json` prints."""
    by_engine = {result.engine: result for result in results}
    own = by_engine.get(SPILLWAY)
    return {
        "rows_per_s": {name: result.rows_per_s for name, result in by_engine.items()},
        "seconds": {name: result.seconds for name, result in by_engine.items()},
        "results": {name: result.results for name, result in by_engine.items()},
        "peak_bytes": {name: result.peak_bytes for name, result in by_engine.items()},
        "peak_rss_bytes": {name: result.peak_rss_bytes for name, result in by_engine.items()},
        "finished": {name: result.finished for name, result in by_engine.items()},
        "notes": {name: result.note for name, result in by_engine.items() if result.note},
        "checksums": {name: result.checksum for name, result in by_engine.items() if result.checksum},
        "results_agree": results_agree(by_engine.values()),
        "ratio_spark_default": _speed_ratio(own, by_engine.get(SPARK_DEFAULT)),
        "ratio_spark_tuned": _speed_ratio(own, by_engine.get(SPARK_TUNED)),
        "ratio_spark_rocksdb": _speed_ratio(own, by_engine.get(SPARK_ROCKSDB)),
        "ratio_duckdb": _speed_ratio(own, by_engine.get(DUCKDB)),
        "memory_ratio_spark_default": _memory_ratio(own, by_engine.get(SPARK_DEFAULT)),
        "epoch_growth": None if own is None else epoch_growth(own.epoch_seconds),
    }


def epoch_growth(epoch_seconds: Sequence[float]) -> float | None:
    """Mean of the last five epochs over the mean of epochs 6-10; None below ten epochs."""
    steady = epoch_seconds[_STEADY_EPOCHS]
    if len(epoch_seconds) < _STEADY_EPOCHS.stop or fmean(steady) <= 0:
        return None
    return fmean(epoch_seconds[-_LAST_EPOCHS:]) / fmean(steady)


def _speed_ratio(own: PeerResult | None, peer: PeerResult | None) -> float | None:
    if own is None or peer is None or not own.rows_per_s or not peer.rows_per_s:
        return None
    if peer.finished and len(own.all_seconds) == len(peer.all_seconds) > 1:
        return median(theirs / ours for ours, theirs in zip(own.all_seconds, peer.all_seconds, strict=True))
    return own.rows_per_s / peer.rows_per_s


def _memory_ratio(own: PeerResult | None, peer: PeerResult | None) -> float | None:
    if own is None or peer is None or not own.peak_bytes or not peer.peak_bytes:
        return None
    if own.peak_pss_bytes is None or peer.peak_pss_bytes is None:  # only like with like
        return own.peak_rss_bytes / peer.peak_rss_bytes if peer.peak_rss_bytes else None
    return own.peak_bytes / peer.peak_bytes
