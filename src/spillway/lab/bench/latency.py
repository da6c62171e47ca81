"""The benchmark `latency`: files arrive at a fixed rate, and the time until their results can be read counts.

Each engine runs the same view over the same files, alone, in a process of its own with the same cores, warmed
up by a run over other files and by the first seconds of the schedule. A result has arrived with the last of
its input files, and is visible when a reader of the sink may count on it (`live/visibility`): with Flink,
after the next of its checkpoints. All results are checked against DuckDB's.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.bench.latency_metrics import latencies, latency_metrics
from spillway.lab.engines import (
    FLINK,
    GRACE_SECONDS,
    SHAPES,
    SPARK_DEFAULT,
    SPILLWAY,
    LiveJob,
    PeerResult,
    Schedule,
    expected_sum,
    prepare_flink_live,
    run_subprocess,
    write_waiting,
)

PROGRAMS: Mapping[str, str] = {SPILLWAY: "spillway_live", SPARK_DEFAULT: "spark_live"}
ENGINES = (*PROGRAMS, FLINK)
SHAPE_OF_STREAMS: Mapping[int, str] = {2: "pair", 3: "join"}
WARM_UP_ROWS = 60_000
"""Eight epochs, as every warm-up has at least."""


def bench_latency(
    *,
    rate: int,
    seconds: float,
    warm_seconds: float,
    interval_ms: int,
    streams: int,
    engines: tuple[str, ...],
    drain_seconds: float,
    note: Callable[[str], None],
    checkpoint_ms: int = 500,
    warm_up_rows: int = WARM_UP_ROWS,
) -> dict[str, Any]:
    """Runs the engines one after the other and compares them."""
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown:
        raise JobError(f"unknown engine {unknown[0]}; known engines: {', '.join(ENGINES)}")
    if streams not in SHAPE_OF_STREAMS:
        raise JobError(f"bench latency: {streams} streams: use 2 or 3")
    schedule = Schedule.at_rate(
        rate,
        streams=streams,
        interval_seconds=interval_ms / 1000,
        warm_seconds=warm_seconds,
        seconds=seconds,
    )
    shape = SHAPE_OF_STREAMS[streams]
    measured = {}
    results: list[PeerResult] = []
    with tempfile.TemporaryDirectory(prefix="spillway-bench-latency-") as scratch:
        waiting = Path(scratch) / "waiting"
        note(f"writing {schedule.drops} files of {schedule.rows_per_file:,} rows for each stream")
        write_waiting(waiting, SHAPES[shape], schedule)
        expected = expected_sum(waiting, SHAPES[shape])
        job = LiveJob(shape, str(waiting), schedule, expected.rows, drain_seconds)
        limit_seconds = schedule.seconds + drain_seconds + GRACE_SECONDS
        for engine in engines:
            note(f"running {engine} for {schedule.seconds:.0f} s")
            out = Path(scratch) / engine
            if engine == FLINK:
                argv = prepare_flink_live(
                    job, out, note, checkpoint_ms=checkpoint_ms, warm_up_rows=warm_up_rows
                )
            else:
                argv = _argv(engine, job, out, warm_up_rows)
            result = run_subprocess(argv, limit_seconds, engine=engine)
            results.append(result)
            if result.finished:
                measured[engine] = latencies(
                    Path(result.output), schedule, SHAPES[shape].streams, result.output_columns
                )
            note(_line(result))
    settings = {
        "bench": "latency", "rate": schedule.rate, "seconds": seconds, "warm_seconds": warm_seconds,
        "interval_ms": interval_ms, "streams": streams, "rows_per_file": schedule.rows_per_file,
    }  # fmt: skip
    return {**settings, **latency_metrics(results, measured, expected)}


def _argv(engine: str, job: LiveJob, out: Path, warm_up_rows: int) -> list[str]:
    program = f"spillway.lab.engines.live.{PROGRAMS[engine]}"
    return [
        sys.executable, "-m", program, job.to_json(), str(out), "--warm-up-rows", str(warm_up_rows)
    ]  # fmt: skip


def _line(result: PeerResult) -> str:
    text = f"{result.engine}: {result.results:,} results in {len(result.epoch_seconds)} batches"
    return f"{text} ({result.note})" if result.note else text
