"""The benchmark `spill`: the same files with all of the memory that their state needs, and with less.

Spillway runs first without a limit: its largest state on one processor is the memory that is needed. Then it
runs with shares of that as its whole budget, and Spark's own join runs with RocksDB as its state store and
unlimited memory. Each variant has its own warm process, they take turns, and times include clean-up.

How long a spill delays an epoch is measured separately, with more rows: when 200 MB are full and 30 % are
freed.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.lab.bench.spill_metrics import peak_resident_bytes, spill_metrics, spill_pauses
from spillway.lab.bench.spill_variant import FULL, SpillVariant, spill_variants
from spillway.lab.engines import (
    GRACE_SECONDS,
    SPARK_ROCKSDB,
    EngineProcess,
    PeerResult,
    median_run,
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
        data = Path(scratch) / "data"
        note(f"writing {rows:,} rows per stream in {epochs} files")
        write_join_data(data, rows=rows, files=epochs)
        with SpillRuns(data, Path(scratch), limit_seconds, note) as runs:
            needed_bytes = runs.first_turn(max(variant.divisor for variant in variants))
            for number in range(repeats):
                for variant in variants[:: -1 if number % 2 else 1]:
                    if number or variant.name != FULL:
                        runs.turn(variant)
            if rocksdb:
                runs.rocksdb()
            results, journals = runs.results(), runs.journals()
    settings = {"rows": rows, "epochs": epochs, "repeats": repeats, "needed_bytes": needed_bytes}
    metrics = {"bench": "spill", **settings, **spill_metrics(results, journals)}
    return metrics | {"spill_pauses": _pauses(limit_seconds, note)} if pause else metrics


class SpillRuns:
    """The processes of the variants, and what their turns gave so far."""

    def __init__(self, data: Path, scratch: Path, limit_seconds: float, note: Callable[[str], None]) -> None:
        self._data, self._scratch, self._limit_seconds, self._note = data, scratch, limit_seconds, note
        self._taken: dict[str, list[PeerResult]] = {}
        self._processes: dict[str, EngineProcess] = {}
        self._open = ExitStack()
        self._needed_bytes = 0

    def __enter__(self) -> "SpillRuns":
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    def first_turn(self, largest_divisor: int) -> int:
        """Run without a limit: the bytes that the state of a processor needs."""
        first = self.turn(SpillVariant(FULL, 0))
        if not first.finished:
            raise JobError(f"bench spill: the run without a limit failed: {first.note}")
        self._needed_bytes = peak_resident_bytes(read_journal(Path(first.journal)))
        if self._needed_bytes // max(1, largest_divisor) < MINIMUM_BYTES:
            raise JobError(
                f"bench spill: the state needs {self._needed_bytes} bytes per processor, and "
                f"1/{largest_divisor} of it is less than the smallest budget, {MINIMUM_BYTES} bytes: "
                "use more --rows, or larger --shares"
            )
        return self._needed_bytes

    def turn(self, variant: SpillVariant) -> PeerResult:
        """One run of a variant; one that did not finish before is not run again."""
        name, taken = variant.name, self._taken.setdefault(variant.name, [])
        if taken and not taken[-1].finished:
            return taken[-1]
        if name not in self._processes:
            budget = self._needed_bytes // variant.divisor if variant.divisor else None
            out = self._scratch / f"spillway-{len(self._processes)}"
            argv = spillway_argv(self._data, out, memory_bytes=budget, results=variant.results)
            self._processes[name] = self._open.enter_context(EngineProcess(argv, engine=name))
        self._note(f"running {name}")
        result = self._processes[name].turn(self._limit_seconds + GRACE_SECONDS)
        taken.append(result)
        self._note(_line(result))
        if result.output:
            shutil.rmtree(result.output)  # its checksum is known, and many runs would fill a disk
        return result

    def rocksdb(self) -> None:
        """One run of the peer."""
        out, limit_seconds = self._scratch / "rocksdb", self._limit_seconds
        argv = spark_argv(
            self._data, out, "rocksdb", limit_seconds=limit_seconds, warm_up_rows=PEER_WARM_UP_ROWS
        )
        self._taken[SPARK_ROCKSDB] = [_run(SPARK_ROCKSDB, argv, limit_seconds, self._note)]

    def results(self) -> list[PeerResult]:
        return [median_run(taken) for taken in self._taken.values()]

    def journals(self) -> dict[str, list[EpochEntry]]:
        """The epochs of the runs in `results`, if they finished."""
        return {
            result.engine: list(read_journal(Path(result.journal))) if result.finished else []
            for result in self.results()
            if result.engine in self._processes
        }


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
    note(_line(result))
    return result


def _line(result: PeerResult) -> str:
    cpu = "" if result.cpu_seconds is None else f" ({result.cpu_seconds:.1f} of processors)"
    line = f"{result.engine}: {result.seconds:.1f} s{cpu}, {result.results:,} results"
    return f"{line} ({result.note})" if result.note else line
