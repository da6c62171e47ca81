"""The benchmark `latency`: files arrive at a fixed rate, and the time until their results can be read counts.

Each engine runs the same view over the same files, alone, in a process of its own with the same cores, warmed
up by a run over other files and by the first seconds of the schedule. Engines take turns and stay warm in
between, and medians over the turns count, because single runs mislead: on a busy machine one of Spark's had a
median of 16 s, for a reason that was not found, where the next four had 2 to 4 s.

A result has arrived with the last of its input files, and is visible when a reader of the sink may count on
it (`live/visibility`): with Flink, after the next of its checkpoints. The results of every turn are checked
against DuckDB's.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.bench.latency_metrics import Latency, LiveTurn, latencies, latency_metrics, percentile
from spillway.lab.engines import (
    FLINK,
    GRACE_SECONDS,
    SHAPES,
    SPARK_DEFAULT,
    SPILLWAY,
    EngineProcess,
    LiveJob,
    Schedule,
    expected_sum,
    prepare_flink_live,
    write_waiting,
)

PROGRAMS: Mapping[str, str] = {SPILLWAY: "spillway_live", SPARK_DEFAULT: "spark_live"}
ENGINES = (*PROGRAMS, FLINK)
SHAPE_OF_STREAMS: Mapping[int, str] = {2: "pair", 3: "join"}
WARM_UP_ROWS = 300_000
"""As in `bench join`: forty epochs, because what the JVM has to compile is mainly the planning of one."""


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
    repeats: int = 3,
    checkpoint_ms: int = 500,
    warm_up_rows: int = WARM_UP_ROWS,
) -> dict[str, Any]:
    """Runs the engines in turns and compares them."""
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown:
        raise JobError(f"unknown engine {unknown[0]}; known engines: {', '.join(ENGINES)}")
    if streams not in SHAPE_OF_STREAMS:
        raise JobError(f"bench latency: {streams} streams: use 2 or 3")
    schedule = Schedule.at_rate(
        rate, streams=streams, interval_seconds=interval_ms / 1000, warm_seconds=warm_seconds, seconds=seconds
    )
    shape = SHAPE_OF_STREAMS[streams]
    with tempfile.TemporaryDirectory(prefix="spillway-bench-latency-") as scratch:
        waiting = Path(scratch) / "waiting"
        note(f"writing {schedule.drops} files of {schedule.rows_per_file:,} rows for each stream")
        write_waiting(waiting, SHAPES[shape], schedule)
        expected = expected_sum(waiting, SHAPES[shape])
        job = LiveJob(shape, str(waiting), schedule, expected.rows, drain_seconds)
        commands = {
            engine: prepare_flink_live(
                job, Path(scratch) / engine, note, checkpoint_ms=checkpoint_ms, warm_up_rows=warm_up_rows
            )
            if engine == FLINK
            else _argv(engine, job, Path(scratch) / engine, warm_up_rows)
            for engine in engines
        }
        turns = _in_turns(commands, job, repeats, note)
    settings = {
        "bench": "latency", "rate": schedule.rate, "seconds": seconds, "warm_seconds": warm_seconds,
        "interval_ms": interval_ms, "streams": streams, "rows_per_file": schedule.rows_per_file,
        "repeats": repeats,
    }  # fmt: skip
    return {**settings, **latency_metrics(turns, expected)}


def _in_turns(
    commands: Mapping[str, list[str]], job: LiveJob, rounds: int, note: Callable[[str], None]
) -> list[LiveTurn]:
    """One turn of every engine per round, in an order that alternates; none after a turn that failed."""
    limit_seconds = job.schedule.seconds + job.drain_seconds + GRACE_SECONDS
    turns: list[LiveTurn] = []
    with ExitStack() as stack:
        processes = {
            engine: stack.enter_context(EngineProcess(argv, engine=engine))
            for engine, argv in commands.items()
        }
        for number in range(rounds):
            for engine in list(commands)[:: -1 if number % 2 else 1]:
                if any(turn.result.engine == engine and not turn.result.finished for turn in turns):
                    continue
                note(f"running {engine} for {job.schedule.seconds:.0f} s")
                result = processes[engine].turn(limit_seconds)
                found: list[Latency] = []
                if result.finished:
                    output = Path(result.output)
                    found = latencies(output, job.schedule, job.shape.streams, result.output_columns)
                turns.append(LiveTurn(result, tuple(found)))
                note(_line(turns[-1]))
    return turns


def _argv(engine: str, job: LiveJob, out: Path, warm_up_rows: int) -> list[str]:
    program = f"spillway.lab.engines.live.{PROGRAMS[engine]}"
    return [
        sys.executable, "-m", program, job.to_json(), str(out), "--warm-up-rows", str(warm_up_rows)
    ]  # fmt: skip


def _line(turn: LiveTurn) -> str:
    result = turn.result
    middle, high = percentile(turn.latencies, 0.5), percentile(turn.latencies, 0.99)
    times = "no latencies" if middle is None or high is None else f"p50 {middle:.2f} s, p99 {high:.2f} s"
    text = f"{result.engine}: {times}, {result.results:,} results in {len(result.epoch_seconds)} batches"
    return f"{text} ({result.note})" if result.note else text
