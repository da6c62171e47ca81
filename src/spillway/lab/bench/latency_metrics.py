"""The metrics of `bench latency`, from the files that a live run leaves.

The latency of a result is the time from the arrival of its last input file to the moment its result file was
visible. A drop's files appear within a millisecond of each other; the first of them counts, so a latency is
never too short. Results of the warm-up drops do not count. Percentiles are over results, by the nearest rank:
the least latency that at least this share of results does not exceed. Of several turns the median counts, and
ratios are medians over the rounds.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from spillway.lab.engines import (
    ARRIVALS_NAME,
    FLINK,
    SPARK_DEFAULT,
    SPILLWAY,
    VISIBLE_NAME,
    PeerResult,
    ResultSum,
    Schedule,
)


class Latency(NamedTuple):
    """How many results took this long."""

    seconds: float
    results: int


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """One turn of one engine, with the latencies of its results if it finished."""

    result: PeerResult
    latencies: tuple[Latency, ...]


def percentile(found: Sequence[Latency], share: float) -> float | None:
    """The latency at this share of all results, by the nearest rank; None without results."""
    total = sum(latency.results for latency in found)
    rank = max(1, math.ceil(share * total))
    reached = 0
    for latency in sorted(found):
        reached += latency.results
        if reached >= rank:
            return latency.seconds
    return None


def latencies(
    output: Path, schedule: Schedule, streams: Sequence[str], text_columns: Sequence[str] = ()
) -> list[Latency]:
    """The latencies of a run with results in `output`, one for each result file and last drop."""
    arrivals = json.loads((output.parent / ARRIVALS_NAME).read_text())
    visible = json.loads((output.parent / VISIBLE_NAME).read_text())
    arrived = [min(arrivals[stream][drop] for stream in streams) for drop in range(schedule.drops)]
    newest = ", ".join(f"{stream}_id" for stream in streams)
    with duckdb.connect() as database:
        database.register("visible", pa.table({"file": list(visible), "at": list(visible.values())}))
        database.register("arrived", pa.table({"drop_number": list(range(schedule.drops)), "at": arrived}))
        source = (
            _read_text(visible, text_columns)
            if text_columns
            else f"read_parquet({_names(visible)}, {_NAMED})"
        )
        rows = database.sql(
            f"WITH found AS (SELECT filename, greatest({newest}) // {schedule.rows_per_file} AS drop_number, "
            f"count(*) AS results FROM {source} GROUP BY ALL) "
            "SELECT visible.at - arrived.at, results FROM found JOIN arrived USING (drop_number) "
            f"JOIN visible ON visible.file = found.filename WHERE drop_number >= {schedule.warm_drops}"
        ).fetchall()
    return [Latency(float(seconds), int(results)) for seconds, results in rows]


_NAMED = "filename = true"


def _names(files: Iterable[str]) -> str:
    return "[" + ", ".join("'" + file.replace("'", "''") + "'" for file in files) + "]"


def _read_text(files: Iterable[str], columns: Sequence[str]) -> str:
    kinds = ", ".join(f"'{name}': '{'BIGINT' if name.endswith('_id') else 'VARCHAR'}'" for name in columns)
    return f"read_csv({_names(files)}, {_NAMED}, header = false, auto_detect = false, columns = {{{kinds}}})"


def latency_metrics(turns: Sequence[LiveTurn], expected: ResultSum) -> dict[str, Any]:
    """What `spillway bench latency --json` prints; ratios are the peer's time over Spillway's."""
    engines = list(dict.fromkeys(turn.result.engine for turn in turns))
    of = {engine: [turn for turn in turns if turn.result.engine == engine] for engine in engines}
    finished = {engine: all(turn.result.finished for turn in taken) for engine, taken in of.items()}
    timed = {engine: taken for engine, taken in of.items() if finished[engine]}
    metrics: dict[str, Any] = {
        "latency": {engine: _of_engine(taken) for engine, taken in timed.items()},
        "batches": {
            engine: [len(turn.result.epoch_seconds) for turn in taken] for engine, taken in of.items()
        },
        "batch_seconds": {engine: _batch_seconds(taken) for engine, taken in of.items()},
        "results": {engine: [turn.result.results for turn in taken] for engine, taken in of.items()},
        "expected_results": expected.rows,
        "results_right": {
            engine: all((turn.result.results, turn.result.checksum) == expected for turn in taken)
            for engine, taken in of.items()
        },
        "finished": finished,
        "notes": {engine: taken[-1].result.note for engine, taken in of.items() if taken[-1].result.note},
        "peak_bytes": {engine: max(turn.result.peak_bytes for turn in taken) for engine, taken in of.items()},
    }
    own = timed.get(SPILLWAY, [])
    for name, peer in (("spark_default", SPARK_DEFAULT), ("flink", FLINK)):
        for label, share in (("p50", 0.5), ("p99", 0.99)):
            metrics[f"ratio_{label}_{name}"] = _ratio(timed.get(peer, []), own, share)
    ours, theirs = _middle(own, 0.99), _middle(timed.get(SPARK_DEFAULT, []), 0.5)
    metrics["p99_below_spark_p50"] = None if ours is None or theirs is None else ours < theirs
    return metrics


def _of_engine(turns: Sequence[LiveTurn]) -> dict[str, Any]:
    return {
        "p50_seconds": _middle(turns, 0.5),
        "p99_seconds": _middle(turns, 0.99),
        "all_p50_seconds": _each(turns, 0.5),
        "all_p99_seconds": _each(turns, 0.99),
        "rows": sum(latency.results for turn in turns for latency in turn.latencies),
    }


def _batch_seconds(turns: Sequence[LiveTurn]) -> list[float]:
    """The median batch of each turn that has any: a turn that was disturbed shows here, too."""
    return [round(median(turn.result.epoch_seconds), 3) for turn in turns if turn.result.epoch_seconds]


def _each(turns: Sequence[LiveTurn], share: float) -> list[float]:
    found = (percentile(turn.latencies, share) for turn in turns)
    return [seconds for seconds in found if seconds is not None]


def _middle(turns: Sequence[LiveTurn], share: float) -> float | None:
    """The median over the turns."""
    found = _each(turns, share)
    return median(found) if found else None


def _ratio(peer: Sequence[LiveTurn], own: Sequence[LiveTurn], share: float) -> float | None:
    """The median over the rounds of the peer's time over Spillway's."""
    pairs = list(zip(_each(peer, share), _each(own, share), strict=False))
    return (
        median(theirs / ours for theirs, ours in pairs) if pairs and all(ours for _, ours in pairs) else None
    )
