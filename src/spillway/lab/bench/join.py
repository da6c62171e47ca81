"""The benchmark `join`: the same files and triggers through Spillway, Spark's own join, and DuckDB.

Each engine has its own process, and only one runs at a time. With `repeats` they take turns and stay warm in
between, so slow phases of the machine affect all of them: the median run of each counts, and ratios are
medians over the rounds. DuckDB's one-shot join, which sees all input at once, is an upper bound, not a
competitor.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.engines import (
    DUCKDB,
    GRACE_SECONDS,
    SHAPES,
    SPILLWAY,
    STORES,
    EngineProcess,
    PeerResult,
    compare,
    duckdb_argv,
    median_run,
    spark_argv,
    spillway_argv,
)

ENGINES = (SPILLWAY, *STORES, DUCKDB)


def bench_join(
    *,
    rows: int,
    epochs: int,
    engines: tuple[str, ...],
    limit_seconds: float,
    note: Callable[[str], None],
    free_run: bool = False,
    shape: str = "join",
    repeats: int = 1,
) -> dict[str, Any]:
    """Runs the engines and compares them; `limit_seconds` stops a slow peer."""
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown:
        raise JobError(f"unknown engine {unknown[0]}; known engines: {', '.join(ENGINES)}")
    with tempfile.TemporaryDirectory(prefix="spillway-bench-join-") as scratch:
        data = Path(scratch) / "data"
        note(f"writing {rows:,} rows per stream in {epochs} files")
        SHAPES[shape].write(data, rows=rows, files=epochs)
        commands = {
            engine: _argv(engine, shape, data, Path(scratch) / engine, limit_seconds, free_run)
            for engine in engines
        }
        results = in_turns(commands, repeats, limit_seconds + GRACE_SECONDS, note)
    settings = {"rows": rows, "epochs": epochs, "free_run": free_run, "repeats": repeats}
    own = next((result for result in results if result.engine == SPILLWAY), None)
    return {
        "bench": shape,
        **settings,
        **compare(results),
        "all_seconds": {
            result.engine: [round(seconds, 2) for seconds in result.all_seconds] for result in results
        },
        "epoch_seconds": [] if own is None else [round(seconds, 3) for seconds in own.epoch_seconds],
    }


def in_turns(
    commands: Mapping[str, Sequence[str]], rounds: int, limit_seconds: float, note: Callable[[str], None]
) -> list[PeerResult]:
    """One result per engine, from one turn in each round; an engine that did not finish gets no further turn.
    The order alternates from round to round: otherwise what an engine leaves behind would always slow down
    the same one.
    """
    runs: dict[str, list[PeerResult]] = {engine: [] for engine in commands}
    with ExitStack() as stack:
        processes = {
            engine: stack.enter_context(EngineProcess(argv, engine=engine))
            for engine, argv in commands.items()
        }
        for number in range(rounds):
            for engine in list(commands)[:: -1 if number % 2 else 1]:
                if all(run.finished for run in runs[engine]):
                    note(f"running {engine}")
                    runs[engine].append(processes[engine].turn(limit_seconds))
                    note(_line(runs[engine][-1]))
                if number == rounds - 1:
                    processes[engine].close()
    return [median_run(taken) for taken in runs.values()]


def _line(result: PeerResult) -> str:
    text = (
        f"{result.engine}: {result.rows_per_s:,.0f} rows/s, {result.seconds:.1f} s, "
        f"{result.results:,} results, peak {result.peak_bytes / 1e9:.2f} GB"
    )
    return f"{text} ({result.note})" if result.note else text


def _argv(engine: str, shape: str, data: Path, out: Path, limit_seconds: float, free_run: bool) -> list[str]:
    if engine == SPILLWAY:
        return spillway_argv(data, out, free_run=free_run, shape=shape)
    if engine in STORES:
        return spark_argv(
            data, out, STORES[engine], limit_seconds=limit_seconds, free_run=free_run, shape=shape
        )
    return duckdb_argv(data, out, shape=shape)
