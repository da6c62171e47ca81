"""The commands of the engines that benchmarks compare, each a program that `process` runs."""

import sys
from pathlib import Path
from typing import Literal

from spillway.lab.engines.result import SPARK_DEFAULT, SPARK_ROCKSDB, SPARK_TUNED

Store = Literal["default", "tuned", "rocksdb"]
STORES: dict[str, Store] = {SPARK_DEFAULT: "default", SPARK_TUNED: "tuned", SPARK_ROCKSDB: "rocksdb"}
"""Spark's state stores with their settings, by the engine that uses them."""


def spark_argv(
    data: Path,
    out: Path,
    store: Store,
    *,
    cores: int = 2,
    limit_seconds: float | None = None,
    free_run: bool = False,
    warm_up_rows: int | None = None,
    shape: str = "join",
) -> list[str]:
    """The command of Spark's own chained stream-stream join."""
    options = {"limit_seconds": limit_seconds, "warm_up_rows": warm_up_rows, "free_run": free_run}
    return _argv("spark_join", data, out, store=store, cores=cores, shape=shape, **options)


def bare_pyspark_argv(master: str) -> list[str]:
    """The command of bare PySpark's first Python job."""
    return [sys.executable, "-m", "spillway.lab.engines.bare_pyspark", master]


def spillway_argv(
    data: Path,
    out: Path,
    *,
    cores: int = 2,
    free_run: bool = False,
    memory_bytes: int | None = None,
    results: str | None = None,
    limit_seconds: float | None = None,
    warm_up_rows: int | None = None,
    shape: str = "join",
) -> list[str]:
    """The command of Spillway's own run; `memory_bytes` is the budget of one processor, `results` the key of
    a job's `[run]` table."""
    options = {
        "memory_bytes": memory_bytes,
        "results": results,
        "limit_seconds": limit_seconds,
        "warm_up_rows": warm_up_rows,
        "free_run": free_run,
    }
    return _argv("spillway_join", data, out, cores=cores, shape=shape, **options)


def tpch_argv(
    data: Path,
    out: Path,
    query: str,
    *,
    cores: int = 2,
    planned: bool = False,
    memory_bytes: int | None = None,
    results: str | None = None,
    limit_seconds: float | None = None,
    warm_up: Path | None = None,
) -> list[str]:
    """The command of a TPC-H query over streams of files; `planned` takes the planner's own tree."""
    options = {
        "planned": planned,
        "memory_bytes": memory_bytes,
        "results": results,
        "limit_seconds": limit_seconds,
        "warm_up": warm_up,
    }
    return _argv("spillway_tpch", data, out, query=query, cores=cores, **options)


def duckdb_argv(data: Path, out: Path, *, threads: int = 2, shape: str = "join") -> list[str]:
    """The command of DuckDB's one-shot join: an upper bound, because it sees all input at once."""
    return _argv("duckdb_join", data, out, threads=threads, shape=shape)


def _argv(program: str, data: Path, out: Path, **options: object) -> list[str]:
    """A program of this package; None and False leave an option out, True gives it without a value."""
    argv = [sys.executable, "-m", f"spillway.lab.engines.{program}", str(data), str(out)]
    for name, value in options.items():
        if value is not None and value is not False:
            argv += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return argv
