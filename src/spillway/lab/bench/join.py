"""The benchmark `join`: the same rows through Spillway, Spark's own join, DuckDB, Flink and Pathway.

Each engine has its own process, and only one runs at a time. With `repeats` they take turns and stay warm in
between, so slow phases of the machine affect all of them: the median run of each counts, and ratios are
medians over the rounds. DuckDB's one-shot join, which sees all input at once, is an upper bound, not a
competitor.

By default Spillway and Spark read one file of each stream per epoch. With `free_run` every engine chooses its
own batches of the same files; Flink, Pathway and DuckDB always do. With `cold` the whole command counts: a
new process for every run, without a warm-up, from its start to its answer.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.engines import (
    DUCKDB,
    FOREIGN,
    GRACE_SECONDS,
    SHAPES,
    SPILLWAY,
    STORES,
    EngineProcess,
    PeerResult,
    compare,
    duckdb_argv,
    median_run,
    prepare_foreign,
    spark_argv,
    spillway_argv,
)

ENGINES = (SPILLWAY, *STORES, DUCKDB, *FOREIGN)


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
    cold: bool = False,
) -> dict[str, Any]:
    """Runs the engines and compares them; `limit_seconds` stops a slow peer."""
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown:
        raise JobError(f"unknown engine {unknown[0]}; known engines: {', '.join(ENGINES)}")
    with tempfile.TemporaryDirectory(prefix="spillway-bench-join-") as scratch:
        data = Path(scratch) / "data"
        note(f"writing {rows:,} rows per stream in {epochs} files")
        SHAPES[shape].write(data, rows=rows, files=epochs)
        run = JoinRun(shape, data, limit_seconds, free_run, 0 if cold else None)
        commands = {engine: run.argv(engine, Path(scratch) / engine, note) for engine in engines}
        results = in_turns(commands, repeats, limit_seconds + GRACE_SECONDS, note, cold=cold)
    settings = {"rows": rows, "epochs": epochs, "free_run": free_run, "cold": cold, "repeats": repeats}
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
    commands: Mapping[str, Sequence[str]],
    rounds: int,
    limit_seconds: float,
    note: Callable[[str], None],
    *,
    cold: bool = False,
) -> list[PeerResult]:
    """One result per engine, from one turn in each round; an engine that did not finish gets no further turn.
    The order alternates from round to round: otherwise what an engine leaves behind would always slow down
    the same one. `cold` ends every process after its turn and counts the time of the whole command.
    """
    runs: dict[str, list[PeerResult]] = {engine: [] for engine in commands}
    with ExitStack() as stack:
        processes = {engine: EngineProcess(argv, engine=engine) for engine, argv in commands.items()}
        stack.callback(lambda: [process.close() for process in processes.values()])
        for number in range(rounds):
            for engine in list(commands)[:: -1 if number % 2 else 1]:
                if all(run.finished for run in runs[engine]):
                    note(f"running {engine}")
                    result = processes[engine].turn(limit_seconds)
                    runs[engine].append(replace(result, seconds=result.command_seconds) if cold else result)
                    note(_line(runs[engine][-1]))
                if cold or number == rounds - 1:
                    processes[engine].close()
                if cold:
                    processes[engine] = EngineProcess(commands[engine], engine=engine)
    return [median_run(taken) for taken in runs.values()]


def _line(result: PeerResult) -> str:
    text = (
        f"{result.engine}: {result.rows_per_s:,.0f} rows/s, {result.seconds:.1f} s, "
        f"{result.results:,} results, peak {result.peak_bytes / 1e9:.2f} GB"
    )
    return f"{text} ({result.note})" if result.note else text


@dataclass(frozen=True, slots=True)
class JoinRun:
    """What all engines of one benchmark have in common."""

    shape: str
    data: Path
    limit_seconds: float
    free_run: bool
    warm_up_rows: int | None

    def argv(self, engine: str, out: Path, note: Callable[[str], None]) -> list[str]:
        """The command of an engine; a foreign one gets its environment and its files here."""
        warm_up = self.warm_up_rows
        if engine == SPILLWAY:
            return spillway_argv(
                self.data, out, free_run=self.free_run, warm_up_rows=warm_up, shape=self.shape
            )
        if engine in STORES:
            return spark_argv(
                self.data, out, STORES[engine], limit_seconds=self.limit_seconds,
                free_run=self.free_run, warm_up_rows=warm_up, shape=self.shape,
            )  # fmt: skip
        if engine in FOREIGN:
            return prepare_foreign(FOREIGN[engine], self.shape, self.data, out, note, warm_up=warm_up is None)
        return duckdb_argv(self.data, out, shape=self.shape)
