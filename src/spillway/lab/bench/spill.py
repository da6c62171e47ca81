"""The benchmark `spill`: the same files with all, half and a fifth of the memory that their state needs.

Spillway runs first without a limit: its largest state on one processor is the memory that is needed. Then it
runs with half and a fifth of that as its whole budget, and Spark's own join runs with RocksDB as its state
store and unlimited memory. Each run has its own process, and its time includes clean-up.

How long a spill delays an epoch is measured separately, with more rows: when 200 MB are full and 30 % are
freed.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.bench.spill_metrics import (
    FULL,
    SHARES,
    peak_resident_bytes,
    spill_metrics,
    spill_pauses,
)
from spillway.lab.engines import (
    GRACE_SECONDS,
    SPARK_ROCKSDB,
    PeerResult,
    run_subprocess,
    spark_argv,
    spillway_argv,
    write_join_data,
)
from spillway.manager.journal import EpochEntry, read_journal
from spillway.model import MINIMUM_BYTES

WARM_UP_ROWS = 30_000
"""Fewer than in `bench join`: with RocksDB that warm-up would take longer than the run."""
PAUSE_ROWS, PAUSE_FILES, PAUSE_MEMORY_BYTES = 3_300_000, 44, 267 << 20
"""200 MB of this budget are for state; they are full after about three quarters of the files."""
PAUSE = "spillway-200MB"


def bench_spill(
    *, rows: int, epochs: int, limit_seconds: float, pause: bool, note: Callable[[str], None]
) -> dict[str, Any]:
    """Runs all variants and compares them; `limit_seconds` stops a slow run."""
    results: list[PeerResult] = []
    journals: dict[str, list[EpochEntry]] = {}
    with tempfile.TemporaryDirectory(prefix="spillway-bench-spill-") as scratch:
        root = Path(scratch)
        data = root / "data"
        note(f"writing {rows:,} rows per stream in {epochs} files")
        write_join_data(data, rows=rows, files=epochs)

        def own(name: str, number: int, memory_bytes: int | None) -> None:
            out = root / f"spillway-{number}"
            argv = spillway_argv(data, out, memory_bytes=memory_bytes, warm_up_rows=WARM_UP_ROWS)
            result, journals[name] = run_with_journal(name, argv, limit_seconds, note)
            results.append(result)

        own(FULL, 1, None)
        needed_bytes = peak_resident_bytes(journals[FULL])
        _check(needed_bytes, rows, results[0])
        for name, divisor in SHARES.items():
            own(name, divisor, needed_bytes // divisor)
        argv = spark_argv(
            data, root / "rocksdb", "rocksdb", limit_seconds=limit_seconds, warm_up_rows=WARM_UP_ROWS
        )
        results.append(_run(SPARK_ROCKSDB, argv, limit_seconds, note))
    settings = {"rows": rows, "epochs": epochs, "needed_bytes": needed_bytes}
    metrics = {"bench": "spill", **settings, **spill_metrics(results, journals)}
    return metrics | {"spill_pauses": _pauses(limit_seconds, note)} if pause else metrics


def _pauses(limit_seconds: float, note: Callable[[str], None]) -> list[dict[str, float]]:
    """The spills of a state of 200 MB per processor, and the share of the epoch that each took."""
    with tempfile.TemporaryDirectory(prefix="spillway-bench-pause-") as scratch:
        root = Path(scratch)
        write_join_data(root / "data", rows=PAUSE_ROWS, files=PAUSE_FILES)
        argv = spillway_argv(root / "data", root / "out", memory_bytes=PAUSE_MEMORY_BYTES)
        pauses = spill_pauses(run_with_journal(PAUSE, argv, limit_seconds, note)[1])
    for spill in pauses:
        note(
            f"spill of {spill['spilled_bytes'] / 1e6:.0f} of {spill['resident_bytes'] / 1e6:.0f} MB: "
            f"{spill['pause_seconds'] * 1000:.0f} ms, {spill['share']:.1%} of the epoch"
        )
    return pauses


def _check(needed_bytes: int, rows: int, first: PeerResult) -> None:
    if not first.finished:
        raise JobError(f"bench spill: the run without a limit failed: {first.note}")
    if needed_bytes // max(SHARES.values()) < MINIMUM_BYTES:
        raise JobError(
            f"bench spill: the state of {rows} rows per stream is {needed_bytes} bytes per processor, and a "
            f"fifth of it less than the smallest budget, {MINIMUM_BYTES} bytes: use more rows"
        )


def run_with_journal(
    name: str, argv: list[str], limit_seconds: float, note: Callable[[str], None]
) -> tuple[PeerResult, list[EpochEntry]]:
    """One run of Spillway, with its epochs if it finished."""
    result = _run(name, argv, limit_seconds, note)
    return result, list(read_journal(Path(result.journal))) if result.finished else []


def _run(name: str, argv: list[str], limit_seconds: float, note: Callable[[str], None]) -> PeerResult:
    note(f"running {name}")
    result = replace(run_subprocess(argv, limit_seconds + GRACE_SECONDS, engine=name), engine=name)
    line = f"{name}: {result.seconds:.1f} s, {result.results:,} results"
    note(f"{line} ({result.note})" if result.note else line)
    return result
