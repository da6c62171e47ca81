"""Runs an engine in a process of its own, with its memory observed and its time limited.

Invariant: when `run_subprocess` returns, no process of the engine's tree is left. A peer that fails,
prints no answer or overruns is a result (`finished` is false, `note` says why), so that one bad peer does
not cost the others' figures. Known limit: a descendant that is born and orphaned between two memory
samples is not found.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

import psutil

from spillway.bench.compare import SPARK_DEFAULT, SPARK_ROCKSDB
from spillway.bench.peer_result import PeerResult, parse_answer
from spillway.bench.process_memory import ProcessMemory
from spillway.errors import JobError

Store = Literal["default", "rocksdb"]
STORES: dict[str, Store] = {SPARK_DEFAULT: "default", SPARK_ROCKSDB: "rocksdb"}
"""Spark's state stores, by the engine that uses them."""

STOP_SECONDS = 10.0  # a JVM needs some to delete its scratch directories
_NOTE_CHARACTERS = 300


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
    repeats: int = 1,
) -> list[str]:
    """The command of Spark's own chained stream-stream join."""
    argv = [sys.executable, "-m", "spillway.spark.peer_join", str(data), str(out), "--store", store]
    argv += ["--cores", str(cores), "--shape", shape, "--repeats", str(repeats)]
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
    repeats: int = 1,
) -> list[str]:
    """The command of Spillway's own run; `memory_bytes` is the budget of one processor."""
    argv = [sys.executable, "-m", "spillway.spark.own_join", str(data), str(out), "--cores", str(cores)]
    argv += ["--shape", shape, "--repeats", str(repeats)]
    if memory_bytes is not None:
        argv += ["--memory-bytes", str(memory_bytes)]
    if warm_up_rows is not None:
        argv += ["--warm-up-rows", str(warm_up_rows)]
    return [*argv, "--free-run"] if free_run else argv


def duckdb_argv(data: Path, out: Path, *, threads: int = 2, shape: str = "join") -> list[str]:
    """The command of DuckDB's one-shot join: the limit, not a rival, since it sees all input at once."""
    argv = [sys.executable, "-m", "spillway.bench.duckdb_join", str(data), str(out)]
    return [*argv, "--threads", str(threads), "--shape", shape]


def run_subprocess(
    argv: Sequence[str],
    limit_seconds: float | None = None,
    *,
    engine: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> PeerResult:
    """Run a command whose last line of output is a peer's answer; stop its whole tree after `limit_seconds`.

    `engine` names the result when the command gives no answer; absent, the program's name does.
    """
    name = engine if engine is not None else Path(argv[0]).name
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environ, start_new_session=True
        )
        overran = False
        with ProcessMemory(process.pid) as memory:
            try:
                process.wait(limit_seconds)
            except subprocess.TimeoutExpired:
                overran = True
            finally:
                memory.sample()
                _stop(list(memory.seen.values()))
                process.wait()
        note = f"stopped after {limit_seconds:g} s" if overran else _failure(process.returncode, err)
        try:
            answer = parse_answer(_text(out))
        except JobError as error:
            return PeerResult(
                name, 0, 0, 0.0, finished=False, note=note or str(error),
                peak_rss_bytes=memory.peak_rss_bytes, peak_pss_bytes=memory.peak_pss_bytes,
            )  # fmt: skip
    return PeerResult(
        engine=str(engine or answer["engine"]),
        rows_in=int(answer["rows_in"]),
        results=int(answer["results"]),
        seconds=float(answer["seconds"]),
        epoch_seconds=tuple(float(seconds) for seconds in answer["epoch_seconds"]),
        finished=bool(answer.get("finished", True)) and not note,
        peak_rss_bytes=memory.peak_rss_bytes,
        peak_pss_bytes=memory.peak_pss_bytes,
        note=note or str(answer.get("note", "")),
        all_seconds=tuple(float(seconds) for seconds in answer.get("all_seconds", ())),
        progress=tuple((float(seconds), int(results)) for seconds, results in answer.get("progress", ())),
    )


def _stop(tree: Sequence[psutil.Process]) -> None:
    """End what is left of a tree: politely, then not."""
    left = [process for process in tree if process.is_running()]
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            try:
                ask(process)
            except psutil.NoSuchProcess:
                continue
        _, left = psutil.wait_procs(left, timeout=STOP_SECONDS)
        if not left:
            return


def _failure(code: int, err: IO[str]) -> str:
    if code == 0:
        return ""
    lines = [line for line in _text(err).splitlines() if line.strip()]
    said = lines[-1].strip()[:_NOTE_CHARACTERS] if lines else "it said nothing"
    return f"ended with code {code}: {said}"


def _text(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read()
