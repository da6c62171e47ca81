"""The benchmark `epoch`: what an epoch costs besides its rows, and whether that grows.

Two runs of Spillway alone, one file of each stream per epoch. `tiny`: epochs of 100 rows over 1,000,000 rows
of state. `growth`: 100 epochs of equal rows and equal results. To compare two source trees, run the command
in both, in turns: a machine's speed changes by more than what is looked for.

Times are of two kinds: `epoch` is the engine's own, from the journal, by phase; `wall` is from commit to
commit, with all that Spark does between two epochs.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from spillway.errors import JobError
from spillway.lab.engines import GRACE_SECONDS, run_subprocess, spillway_argv, write_fresh_keys
from spillway.manager.journal import PHASES, EpochEntry, read_journal

STREAM_COUNT = 3
EARLY, LATE_COUNT = slice(10, 20), 10
"""Growth compares the last ten epochs with epochs 11 to 20: before, the JVM is still compiling."""
LEAST_EPOCHS = EARLY.stop + LATE_COUNT


def bench_epoch(
    *,
    state_rows: int,
    rows: int,
    epochs: int,
    growth_rows: int,
    limit_seconds: float,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Runs both parts; row counts are those of all streams together."""
    if epochs < LEAST_EPOCHS:
        raise JobError(f"bench epoch: {epochs} epochs: use {LEAST_EPOCHS} or more")
    small, large = (max(1, count // STREAM_COUNT) for count in (rows, growth_rows))
    settings = {"state_rows": state_rows, "rows": rows, "epochs": epochs, "growth_rows": growth_rows}
    note(f"running {epochs} epochs of {rows} rows over {state_rows:,} rows of state")
    tiny = _run([state_rows // STREAM_COUNT, *[small] * epochs], limit_seconds)
    note(f"running {epochs} epochs of {growth_rows:,} rows")
    grown = _run([large] * epochs, limit_seconds)
    return {
        "bench": "epoch",
        **settings,
        "tiny": {
            "epoch_ms": spread_ms([entry.seconds.total for entry in tiny.entries[1:]]),
            "wall_ms": spread_ms(tiny.wall_seconds),
            "phases_ms": phases_ms(tiny.entries[1:]),
        },
        "growth": {
            "epoch_ratio": growth([entry.seconds.total for entry in grown.entries]),
            "wall_ratio": growth(grown.wall_seconds),
            "epoch_ms": spread_ms([entry.seconds.total for entry in grown.entries]),
        },
    }


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """The epochs of a run, and the time from each commit to the next."""

    entries: Sequence[EpochEntry]
    wall_seconds: Sequence[float]


def _run(sizes: Sequence[int], limit_seconds: float) -> EpochTimes:
    with tempfile.TemporaryDirectory(prefix="spillway-bench-epoch-") as scratch:
        data = Path(scratch) / "data"
        write_fresh_keys(data, sizes)
        argv = spillway_argv(data, Path(scratch) / "out")
        result = run_subprocess(argv, limit_seconds + GRACE_SECONDS, engine="spillway")
        if not result.finished:
            raise JobError(f"bench epoch: the run failed: {result.note}")
        epochs = [entry for entry in read_journal(Path(result.journal)) if entry.batch_id is not None]
        return EpochTimes(epochs, [after - before for (before, _), (after, _) in pairwise(result.progress)])


def growth(seconds: Sequence[float]) -> float | None:
    """Mean of the last ten over the mean of 11 to 20; None if there are too few."""
    if len(seconds) < EARLY.stop or fmean(seconds[EARLY]) <= 0:
        return None
    return fmean(seconds[-LATE_COUNT:]) / fmean(seconds[EARLY])


def spread_ms(seconds: Sequence[float]) -> dict[str, float]:
    """The least and the median, in milliseconds."""
    return {"least": round(min(seconds) * 1000, 1), "median": round(median(seconds) * 1000, 1)}


def phases_ms(entries: Sequence[EpochEntry]) -> dict[str, float]:
    """The median of each phase, in milliseconds."""
    return {
        phase: round(median(getattr(entry.seconds, phase) for entry in entries) * 1000, 1) for phase in PHASES
    }
