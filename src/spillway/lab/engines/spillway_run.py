"""One run of Spillway as benchmarks measure it: a view over files, to Parquet, until all is joined.

Its clock runs from the start of the query to its end, its processor time from before planning to the end. A
run that exceeds its limit stops after the epoch that runs then; its journal tells how far it came.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spillway.job import SourceSpec
from spillway.lab.engines.data import parquet_row_count
from spillway.lab.engines.processor_time import ProcessorTime
from spillway.lab.engines.result import SPILLWAY, PeerResult
from spillway.manager.journal import FILE_NAME
from spillway.model import View
from spillway.spark.session import Session


def run_view(
    session: Session,
    view: View | str,
    sources: Mapping[str, SourceSpec],
    out: Path,
    processors: int,
    *,
    run_options: Mapping[str, Any] = MappingProxyType({}),
    limit_seconds: float | None = None,
) -> PeerResult:
    """Join all input to out/results; `run_options` are keys of a job's `[run]` table, such as the budget."""
    epoch_seconds: list[float] = []
    progress: list[tuple[float, int]] = [(0.0, 0)]

    def note(entry: dict[str, Any]) -> None:
        epoch_seconds.append(entry["seconds"]["total"])
        progress.append((time.perf_counter() - began, progress[-1][1] + entry["results"]))

    processor_time, began = ProcessorTime(), time.perf_counter()
    query = session.run(
        view,
        sources,
        checkpoint=str(out / "checkpoint"),
        sink="parquet",
        path=str(out / "results"),
        processors=processors,
        listener=note,
        **run_options,
    )
    finished = query.awaitTermination(limit_seconds)
    if not finished:
        query.stop()
    cpu_seconds = processor_time.seconds()
    summary = query.summary()
    planned = time.perf_counter() - began - summary["seconds"]
    return PeerResult(
        engine=SPILLWAY,
        rows_in=summary["input_rows"],
        results=parquet_row_count(out / "results"),
        seconds=summary["seconds"],
        cpu_seconds=cpu_seconds,
        epoch_seconds=tuple(epoch_seconds),
        finished=finished,
        note="" if finished else f"stopped after {limit_seconds:g} s",
        progress=tuple((at - planned, results) for at, results in progress[1:]),
        journal=str(out / "checkpoint" / FILE_NAME),
        output=str(out / "results") if finished else "",
    )
