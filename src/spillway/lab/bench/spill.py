"""The benchmark `spill`: the same files with all of the memory that their state needs, and with less.

Spillway runs first without a limit: its largest state on one processor is the memory that is needed. Then it
runs with shares of that as its whole budget, and Spark's own join runs with RocksDB as its state store and
unlimited memory. Each variant has its own warm process, they take turns, and times include clean-up.

How long a spill delays an epoch is measured separately, with more rows: when 200 MB are full and 30 % are
freed.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.bench.budget_metrics import peak_resident_bytes
from spillway.lab.bench.budget_runs import BudgetRuns, result_line
from spillway.lab.bench.spill_metrics import spill_metrics, spill_pauses
from spillway.lab.bench.spill_variant import FULL, SpillVariant, spill_variants
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

PEER_WARM_UP_ROWS = 30_000
"""Fewer than ours: with RocksDB our warm-up would take longer than the run."""
PAUSE_ROWS, PAUSE_FILES, PAUSE_MEMORY_BYTES = 3_300_000, 44, 267 << 20
"""200 MB of this budget are for state; they are full after about three quarters of the files."""
PAUSE = "spillway-200MB"


def bench_spill(
    *,
    rows: int,
    epochs: int,
    limit_seconds: float,
    pause: bool,
    note: Callable[[str], None],
    shares: Sequence[int],
    deferred: Sequence[int],
    repeats: int = 1,
    rocksdb: bool = True,
) -> dict[str, Any]:
    """Runs all variants and compares them; `limit_seconds` stops a slow run."""
    variants = spill_variants(shares, deferred)
    with tempfile.TemporaryDirectory(prefix="spillway-bench-spill-") as scratch:
        root = Path(scratch)
        note(f"writing {rows:,} rows per stream in {epochs} files")
        write_join_data(root / "data", rows=rows, files=epochs)
        with BudgetRuns(limit_seconds, note) as runs:
            first = runs.turn(FULL, _argv(root, SpillVariant(FULL, 0), 0, limit_seconds))
            needed_bytes = _needed_bytes(first, max(variant.divisor for variant in variants))
            for number in range(repeats):
                for variant in variants[:: -1 if number % 2 else 1]:
                    if number or variant.name != FULL:
                        runs.turn(variant.name, _argv(root, variant, needed_bytes, limit_seconds))
            results, journals = runs.results(), runs.journals()
        if rocksdb:
            results.append(_rocksdb(root, limit_seconds, note))
    settings = {"rows": rows, "epochs": epochs, "repeats": repeats, "needed_bytes": needed_bytes}
    metrics = {"bench": "spill", **settings, **spill_metrics(results, journals)}
    return metrics | {"spill_pauses": _pauses(limit_seconds, note)} if pause else metrics


def _argv(root: Path, variant: SpillVariant, needed_bytes: int, limit_seconds: float) -> list[str]:
    return spillway_argv(
        root / "data",
        root / variant.name.replace("/", "-"),
        memory_bytes=needed_bytes // variant.divisor if variant.divisor else None,
        results=variant.results,
        limit_seconds=limit_seconds,
    )


def _needed_bytes(first: PeerResult, largest_divisor: int) -> int:
    """What the state of a processor takes in the run without a limit."""
    if not first.finished:
        raise JobError(f"bench spill: the run without a limit failed: {first.note}")
    needed_bytes = peak_resident_bytes(read_journal(Path(first.journal)))
    if needed_bytes // max(1, largest_divisor) < MINIMUM_BYTES:
        raise JobError(
            f"bench spill: the state needs {needed_bytes} bytes per processor, and 1/{largest_divisor} of it "
            f"is less than the smallest budget, {MINIMUM_BYTES} bytes: use more --rows, or larger --shares"
        )
    return needed_bytes


def _rocksdb(root: Path, limit_seconds: float, note: Callable[[str], None]) -> PeerResult:
    argv = spark_argv(
        root / "data",
        root / "rocksdb",
        "rocksdb",
        limit_seconds=limit_seconds,
        warm_up_rows=PEER_WARM_UP_ROWS,
    )
    return _run(SPARK_ROCKSDB, argv, limit_seconds, note)


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


def run_with_journal(
    name: str, argv: list[str], limit_seconds: float, note: Callable[[str], None]
) -> tuple[PeerResult, list[EpochEntry]]:
    """One run of Spillway, with its epochs if it finished."""
    result = _run(name, argv, limit_seconds, note)
    return result, list(read_journal(Path(result.journal))) if result.finished else []


def _run(name: str, argv: list[str], limit_seconds: float, note: Callable[[str], None]) -> PeerResult:
    note(f"running {name}")
    result = replace(run_subprocess(argv, limit_seconds + GRACE_SECONDS, engine=name), engine=name)
    note(result_line(result))
    return result
