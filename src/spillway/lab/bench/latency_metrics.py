"""The metrics of `bench latency`, from the files that a live run leaves.

The latency of a result is the time from the arrival of its last input file to the moment its result file was
visible. A drop's files appear within a millisecond of each other; the first of them counts, so a latency is
never too short. Results of the warm-up drops do not count. Percentiles are over results, by the nearest rank:
the least latency that at least this share of results does not exceed.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
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


def latency_metrics(
    results: Sequence[PeerResult], measured: Mapping[str, Sequence[Latency]], expected: ResultSum
) -> dict[str, Any]:
    """What `spillway bench latency --json` prints; ratios are the peer's time over Spillway's."""
    by_engine = {result.engine: result for result in results}
    per_engine = {name: _of_engine(found) for name, found in measured.items()}
    own, spark = per_engine.get(SPILLWAY), per_engine.get(SPARK_DEFAULT)
    return {
        "latency": per_engine,
        "batches": {name: len(result.epoch_seconds) for name, result in by_engine.items()},
        "results": {name: result.results for name, result in by_engine.items()},
        "expected_results": expected.rows,
        "results_right": {
            name: (result.results, result.checksum) == expected for name, result in by_engine.items()
        },
        "finished": {name: result.finished for name, result in by_engine.items()},
        "notes": {name: result.note for name, result in by_engine.items() if result.note},
        "peak_bytes": {name: result.peak_bytes for name, result in by_engine.items()},
        "ratio_p50_spark_default": _ratio(spark, own, "p50_seconds"),
        "ratio_p99_spark_default": _ratio(spark, own, "p99_seconds"),
        "ratio_p50_flink": _ratio(per_engine.get(FLINK), own, "p50_seconds"),
        "ratio_p99_flink": _ratio(per_engine.get(FLINK), own, "p99_seconds"),
        "p99_below_spark_p50": None if own is None or spark is None else _is_ahead(own, spark),
    }


def _of_engine(found: Sequence[Latency]) -> dict[str, float | int | None]:
    return {
        "p50_seconds": percentile(found, 0.5),
        "p99_seconds": percentile(found, 0.99),
        "most_seconds": percentile(found, 1.0),
        "rows": sum(latency.results for latency in found),
    }


def _is_ahead(own: Mapping[str, float | int | None], spark: Mapping[str, float | int | None]) -> bool | None:
    ours, theirs = own["p99_seconds"], spark["p50_seconds"]
    return None if ours is None or theirs is None else ours < theirs


def _ratio(
    peer: Mapping[str, float | int | None] | None, own: Mapping[str, float | int | None] | None, name: str
) -> float | None:
    if peer is None or own is None or peer[name] is None or not own[name]:
        return None
    theirs, ours = peer[name], own[name]
    assert theirs is not None and ours is not None
    return theirs / ours
