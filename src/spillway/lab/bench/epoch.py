"""The benchmark `epoch`: what an epoch costs besides its rows, and whether that grows.

Three runs of Spillway alone, one file of each stream per epoch. `tiny`: epochs of 100 rows over 1,000,000
rows of state. `growth`: 100 epochs of equal rows and equal results, with the view of `bench join`;
`growth_tree`: the same with the view of `bench tree`. To compare two source trees, run the command in both,
in turns: a machine's speed changes by more than what is looked for.

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
from spillway.lab.engines import GRACE_SECONDS, SHAPES, run_subprocess, spillway_argv, write_fresh_keys
from spillway.manager.journal import PHASES, EpochEntry, read_journal

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
    settings = {"state_rows": state_rows, "rows": rows, "epochs": epochs, "growth_rows": growth_rows}
    note(f"running {epochs} epochs of {rows} rows over {state_rows:,} rows of state")
    tiny = _run("join", [state_rows, *[rows] * epochs], limit_seconds)
    grown = {}
    for name, shape in (("growth", "join"), ("growth_tree", "tree")):
        note(f"running {epochs} epochs of {growth_rows:,} rows, {shape}")
        grown[name] = _growth(_run(shape, [growth_rows] * epochs, limit_seconds))
    return {
        "bench": "epoch",
        **settings,
        "tiny": {
            "epoch_ms": spread_ms([entry.seconds.total for entry in tiny.entries[1:]]),
            "wall_ms": spread_ms(tiny.wall_seconds),
            "phases_ms": phases_ms(tiny.entries[1:]),
        },
        **grown,
    }


def _growth(times: "EpochTimes") -> dict[str, Any]:
    seconds = [entry.seconds.total for entry in times.entries]
    return {
        "epoch_ratio": growth(seconds),
        "median_ratio": growth(seconds, median),
        "wall_ratio": growth(times.wall_seconds),
        "epoch_ms": spread_ms(seconds),
    }


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """The epochs of a run, and the time from each commit to the next."""

    entries: Sequence[EpochEntry]
    wall_seconds: Sequence[float]


def _run(shape: str, sizes: Sequence[int], limit_seconds: float) -> EpochTimes:
    """One file of each stream per size, which is that of all streams together."""
    streams = len(SHAPES[shape].streams)
    with tempfile.TemporaryDirectory(prefix="spillway-bench-epoch-") as scratch:
        data = Path(scratch) / "data"
        write_fresh_keys(data, [max(1, size // streams) for size in sizes], shape)
        argv = spillway_argv(data, Path(scratch) / "out", shape=shape)
        result = run_subprocess(argv, limit_seconds + GRACE_SECONDS, engine="spillway")
        if not result.finished:
            raise JobError(f"bench epoch: the run failed: {result.note}")
        epochs = [entry for entry in read_journal(Path(result.journal)) if entry.batch_id is not None]
        return EpochTimes(epochs, [after - before for (before, _), (after, _) in pairwise(result.progress)])


def growth(seconds: Sequence[float], average: Callable[[Sequence[float]], float] = fmean) -> float | None:
    """Average of the last ten over that of 11 to 20; None if there are too few.

    A mean counts the merges of runs, some of which fall into a few epochs only; a median shows the others.
    """
    if len(seconds) < EARLY.stop or average(seconds[EARLY]) <= 0:
        return None
    return average(seconds[-LATE_COUNT:]) / average(seconds[EARLY])


def spread_ms(seconds: Sequence[float]) -> dict[str, float]:
    """The least and the median, in milliseconds."""
    return {"least": round(min(seconds) * 1000, 1), "median": round(median(seconds) * 1000, 1)}


def phases_ms(entries: Sequence[EpochEntry]) -> dict[str, float]:
    """The median of each phase, in milliseconds."""
    return {
        phase: round(median(getattr(entry.seconds, phase) for entry in entries) * 1000, 1) for phase in PHASES
    }
