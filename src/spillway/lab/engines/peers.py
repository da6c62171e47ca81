"""The commands of the engines that benchmarks compare, each a program that `engine_process` runs."""

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
    argv = [sys.executable, "-m", "spillway.lab.engines.spark_join", str(data), str(out), "--store", store]
    argv += ["--cores", str(cores), "--shape", shape]
    if limit_seconds is not None:
        argv += ["--limit-seconds", str(limit_seconds)]
    if warm_up_rows is not None:
        argv += ["--warm-up-rows", str(warm_up_rows)]
    return [*argv, "--free-run"] if free_run else argv


def spillway_argv(
    data: Path,
    out: Path,
    *,
    cores: int = 2,
    free_run: bool = False,
    memory_bytes: int | None = None,
    warm_up_rows: int | None = None,
    shape: str = "join",
) -> list[str]:
    """The command of Spillway's own run; `memory_bytes` is the budget of one processor."""
    argv = [
        sys.executable,
        "-m",
        "spillway.lab.engines.spillway_join",
        str(data),
        str(out),
        "--cores",
        str(cores),
    ]
    argv += ["--shape", shape]
    if memory_bytes is not None:
        argv += ["--memory-bytes", str(memory_bytes)]
    if warm_up_rows is not None:
        argv += ["--warm-up-rows", str(warm_up_rows)]
    return [*argv, "--free-run"] if free_run else argv


def duckdb_argv(data: Path, out: Path, *, threads: int = 2, shape: str = "join") -> list[str]:
    """The command of DuckDB's one-shot join: the limit, not a rival, since it sees all input at once."""
    argv = [sys.executable, "-m", "spillway.lab.engines.duckdb_join", str(data), str(out)]
    return [*argv, "--threads", str(threads), "--shape", shape]
