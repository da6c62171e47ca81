"""What one engine did with one workload, and the ratios between engines.

`seconds` runs from query start to query end in every engine: session start-up, warm-up and counting the
results are outside. `cpu_seconds` is the processor time of the same span. Rows per second are input rows of
all streams over that time. Memory is the peak over the engine's process tree (see `process_memory` for the
two ways of counting).

Ratios of speed are Spillway over peer (above 1: Spillway is faster); the ratio of memory is Spillway's peak
over the peer's (below 1: Spillway needs less). Of engines that took turns the ratio of speed is the median
over the rounds. A ratio whose engine is missing or has none is None, never 0. An engine that was stopped
early counts with the rows it had processed; only engines that finished must agree on the results: their
number, and their checksum in any order.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median
from typing import Any

from spillway.errors import JobError

ANSWER_KEYS = ("engine", "rows_in", "results", "seconds", "epoch_seconds")


@dataclass(frozen=True, slots=True)
class PeerResult:
    """One run of one engine; one that failed or was stopped early is not `finished`."""

    engine: str
    rows_in: int
    results: int
    seconds: float
    epoch_seconds: tuple[float, ...] = ()
    finished: bool = True
    peak_rss_bytes: int = 0
    peak_pss_bytes: int | None = None
    note: str = ""
    """Why it did not finish, or what it was given that others were not."""
    command_seconds: float = 0.0
    """From the start of the turn to its answer; in a process's first turn this includes the start."""
    all_seconds: tuple[float, ...] = ()
    """The time of every run, if this one represents several."""
    cpu_seconds: float | None = None
    """Processor time of the run in all processes of the engine, if it was measured."""
    all_cpu_seconds: tuple[float, ...] = ()
    progress: tuple[tuple[float, int], ...] = ()
    """Seconds since the start of the query, and the results that were out by then."""
    journal: str = ""
    """The file with the run's epochs, if the engine writes one."""
    output: str = ""
    """Parquet files with the results, if the engine writes them."""
    output_columns: tuple[str, ...] = ()
    """The columns of `output` if it is text, in their order."""
    checksum: str = ""
    """The checksum of the results in any order (see `result_sum`); empty if there is no output."""
    all_answers: frozenset[tuple[int, str]] = frozenset()
    """Results and checksums of every run, if this one represents several."""

    @property
    def rows_per_s(self) -> float:
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0

    @property
    def answers(self) -> frozenset[tuple[int, str]]:
        """The answers of its runs: one pair, unless they differ."""
        return self.all_answers or frozenset({(self.results, self.checksum)})

    @property
    def peak_bytes(self) -> int:
        """The peak to compare: counts shared pages once if the system can."""
        return self.peak_rss_bytes if self.peak_pss_bytes is None else self.peak_pss_bytes

    def to_json(self) -> str:
        """The one line that a peer's process ends with."""
        fields = {key: value for key, value in asdict(self).items() if key != "all_answers"}
        return json.dumps({**fields, "rows_per_s": self.rows_per_s})


def median_run(runs: Sequence[PeerResult]) -> PeerResult:
    """The run with the median time (of two, the slower one), the median processor time and the peaks of all
    runs; an unfinished run, if there is one."""
    unfinished = [run for run in runs if not run.finished]
    chosen = unfinished[0] if unfinished else sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    shared = [run.peak_pss_bytes for run in runs if run.peak_pss_bytes is not None]
    measured = [run.cpu_seconds for run in runs if run.cpu_seconds is not None]
    return replace(
        chosen,
        all_seconds=tuple(run.seconds for run in runs),
        cpu_seconds=median(measured) if measured else None,
        all_cpu_seconds=tuple(measured),
        all_answers=frozenset().union(*(run.answers for run in runs if run.finished)),
        peak_rss_bytes=max(run.peak_rss_bytes for run in runs),
        peak_pss_bytes=max(shared, default=None),
    )


def results_agree(results: Iterable[PeerResult]) -> bool:
    """Whether all runs that finished gave the same results: as many, and with the same checksum.

    Engines that write no output are compared by their count alone.
    """
    answers = frozenset[tuple[int, str]]().union(*(result.answers for result in results if result.finished))
    return len({rows for rows, _ in answers}) == 1 and len({checksum for _, checksum in answers} - {""}) <= 1


def parse_answer(line: str) -> Mapping[str, Any]:
    """Parse the JSON object that ends a program's run."""
    try:
        answer = json.loads(line)
    except json.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise JobError(f"its last line is not a JSON object: {line[:200]!r}; run it alone to see why")
    missing = [key for key in ANSWER_KEYS if key not in answer]
    if missing:
        raise JobError(f"its answer lacks {', '.join(missing)}")
    return answer


SPILLWAY = "spillway"
SPARK_DEFAULT = "spark-default"
SPARK_TUNED = "spark-tuned"
SPARK_ROCKSDB = "spark-rocksdb"
DUCKDB = "duckdb"
FLINK = "flink"
FLINK_UNCHECKED = "flink-no-checkpoints"
FLINK_BINARY = "flink-binary-joins"
PATHWAY = "pathway"
Metric = float | int | str | bool | None
_STEADY_EPOCHS = slice(5, 10)  # epochs 6-10: after warm-up, before state is large
_LAST_EPOCHS = 5


def compare(results: Iterable[PeerResult]) -> dict[str, Metric | dict[str, Metric]]:
    """The metrics that `spillway bench join --json` prints."""
    by_engine = {result.engine: result for result in results}
    own = by_engine.get(SPILLWAY)
    return {
        "rows_per_s": {name: result.rows_per_s for name, result in by_engine.items()},
        "seconds": {name: result.seconds for name, result in by_engine.items()},
        "batches": {name: len(result.epoch_seconds) for name, result in by_engine.items()},
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
        "ratio_flink": _speed_ratio(own, by_engine.get(FLINK)),
        "ratio_flink_no_checkpoints": _speed_ratio(own, by_engine.get(FLINK_UNCHECKED)),
        "ratio_flink_binary_joins": _speed_ratio(own, by_engine.get(FLINK_BINARY)),
        "ratio_pathway": _speed_ratio(own, by_engine.get(PATHWAY)),
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
    if own.peak_pss_bytes is None or peer.peak_pss_bytes is None:  # compare only the same kind of number
        return own.peak_rss_bytes / peer.peak_rss_bytes if peer.peak_rss_bytes else None
    return own.peak_bytes / peer.peak_bytes
