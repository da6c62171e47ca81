"""The benchmark `join`: the same files and triggers through Spillway, Spark's own join, and DuckDB.

Engines run one after the other, each in a process of its own, so that only ratios inside one run are
compared. With `repeats` each does it several times in its process, and its median run counts. DuckDB's
one-shot join, which sees all input at once, is the limit and not a rival.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spillway.bench.compare import DUCKDB, SPILLWAY, compare
from spillway.bench.join_data import SHAPES
from spillway.bench.peer_result import PeerResult
from spillway.bench.peers import STORES, duckdb_argv, run_subprocess, spark_argv, spillway_argv
from spillway.errors import JobError

ENGINES = (SPILLWAY, *STORES, DUCKDB)


def bench_join(
    *,
    rows: int,
    epochs: int,
    engines: tuple[str, ...],
    limit_seconds: float,
    free_run: bool,
    note: Callable[[str], None],
    shape: str = "join",
    repeats: int = 1,
) -> dict[str, Any]:
    """Runs the engines and compares; `limit_seconds` stops a peer that is too slow to wait for."""
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown:
        raise JobError(f"unknown engine {unknown[0]}; known are {', '.join(ENGINES)}")
    with tempfile.TemporaryDirectory(prefix="spillway-bench-join-") as scratch:
        data = Path(scratch) / "data"
        note(f"writing {rows:,} rows per stream in {epochs} files")
        SHAPES[shape].write(data, rows=rows, files=epochs)
        results = []
        for engine in engines:
            note(f"running {engine}")
            result = _run(engine, shape, data, Path(scratch) / engine, limit_seconds, free_run, repeats)
            note(_line(result))
            results.append(result)
    settings = {"rows": rows, "epochs": epochs, "free_run": free_run, "repeats": repeats}
    own = next((one for one in results if one.engine == SPILLWAY), None)
    return {
        "bench": shape,
        **settings,
        **compare(results),
        "all_seconds": {one.engine: [round(seconds, 2) for seconds in one.all_seconds] for one in results},
        "epoch_seconds": [] if own is None else [round(seconds, 3) for seconds in own.epoch_seconds],
    }


def _line(result: PeerResult) -> str:
    text = (
        f"{result.engine}: {result.rows_per_s:,.0f} rows/s, {result.seconds:.1f} s, "
        f"{result.results:,} results, peak {result.peak_bytes / 1e9:.2f} GB"
    )
    return f"{text} ({result.note})" if result.note else text


def _run(
    engine: str, shape: str, data: Path, out: Path, limit_seconds: float, free_run: bool, repeats: int
) -> PeerResult:
    if engine == SPILLWAY:
        argv = spillway_argv(data, out, free_run=free_run, shape=shape, repeats=repeats)
    elif engine in STORES:
        argv = spark_argv(
            data, out, STORES[engine],
            limit_seconds=limit_seconds, free_run=free_run, shape=shape, repeats=repeats,
        )  # fmt: skip
    else:
        argv = duckdb_argv(data, out, shape=shape)
    return run_subprocess(argv, repeats * limit_seconds + 120, engine=engine)
