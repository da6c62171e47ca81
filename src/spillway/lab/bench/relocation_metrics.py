"""The metrics of `bench relocation`, from journals alone. Pure.

Cost of moving: rows per second of runs in which some groups change their processor every few epochs, over
those of runs without moves; medians over pairs of runs. Delay: the median length of epochs in which a
receiver loads, over that of the other epochs of the same run; and the most rows that any epoch left pending.
Balance: rows per second over the last epochs of a run with emulated service times, one processor slowed down,
over the same without the slow-down. Resize: the longest time between the ends of two epochs after a request
for another number of processors, minus the median over all epochs, as a multiple of that median.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from spillway.manager.journal import EpochEntry, EpochKind

WARM_EPOCHS = 5
STEADY_EPOCHS = 10
RESIZE_EPOCHS = 5


def rows_per_s(entries: Sequence[EpochEntry]) -> float:
    """Rows per second over all epochs with input except the first few."""
    return _rate(_input(entries)[WARM_EPOCHS:])


def steady_rows_per_s(entries: Sequence[EpochEntry]) -> float:
    """Rows per second over the last epochs with input."""
    return _rate(_input(entries)[-STEADY_EPOCHS:])


def _rate(counted: Sequence[EpochEntry]) -> float:
    seconds = sum(entry.seconds.total for entry in counted)
    return float(sum(entry.input_rows for entry in counted) / max(seconds, 1e-9))


def rounds(entries: Sequence[EpochEntry]) -> int:
    """How often groups began to move."""
    return sum(bool(entry.relocation.begun) for entry in entries)


def moving_metrics(
    still: Sequence[Sequence[EpochEntry]], moving: Sequence[Sequence[EpochEntry]]
) -> dict[str, Any]:
    """`still` and `moving` are runs of the same input, in pairs."""
    entries = [entry for run in moving for entry in run]
    loads = [load for entry in entries for load in entry.relocation.loads]
    switched = [move for entry in entries for move in entry.relocation.switched]
    rates = [rows_per_s(run) for run in moving], [rows_per_s(run) for run in still]
    return {
        "rows_per_s": {"moving": round(median(rates[0])), "still": round(median(rates[1]))},
        "moving_over_still": round(median(a / b for a, b in zip(*rates, strict=True)), 3),
        "relocations": len(switched),
        "moved_bytes": [move.bytes for move in switched],
        "loads": len(loads),
        "largest_load_bytes": max((load.bytes for load in loads), default=0),
        "loading_epoch_ratio": _loading_ratio(moving),
        "pending_rows_max": max(entry.pending_rows for entry in entries),
    }


def balance_metrics(runs: Mapping[str, Sequence[EpochEntry]], unloaded: str) -> dict[str, Any]:
    """`runs` by name; `unloaded` is the one that the others are compared with."""
    steady = {name: steady_rows_per_s(entries) for name, entries in runs.items()}
    return {
        "steady_rows_per_s": {name: round(value) for name, value in steady.items()},
        "steady_over_unloaded": {name: round(value / steady[unloaded], 3) for name, value in steady.items()},
        "rounds": {name: rounds(entries) for name, entries in runs.items()},
        "rows_per_s_by_epoch": {
            name: [round(entry.input_rows / entry.seconds.total) for entry in _input(entries)]
            for name, entries in runs.items()
        },
    }


def resize_metrics(entries: Sequence[EpochEntry], requested: Sequence[int]) -> dict[str, Any]:
    """A run in which other numbers of processors were asked for after these epochs."""
    ends = {entry.sequence: entry.time + entry.seconds.total for entry in entries}
    gaps = {number: ends[number] - ends[number - 1] for number in ends if number - 1 in ends}
    usual = median(gaps.values())
    after = {number for first in requested for number in range(first + 1, first + 1 + RESIZE_EPOCHS)}
    return {
        "resize_processors": sorted({len(entry.processors) for entry in entries}),
        "resize_pause_epochs": round(max(gaps[number] for number in after if number in gaps) / usual - 1, 3),
        "resize_relocations": sum(len(entry.relocation.switched) for entry in entries),
        "resize_restarts": len({entry.token for entry in entries}) - 1,
    }


def _loading_ratio(runs: Sequence[Sequence[EpochEntry]]) -> float | None:
    ratios = []
    for entries in runs:
        counted = _input(entries)[WARM_EPOCHS:]
        loading = [entry.seconds.total for entry in counted if entry.relocation.loads]
        others = [entry.seconds.total for entry in counted if not entry.relocation.loads]
        if loading and others:
            ratios.append(median(loading) / median(others))
    return round(median(ratios), 3) if ratios else None


def _input(entries: Sequence[EpochEntry]) -> list[EpochEntry]:
    return [entry for entry in entries if entry.kind is EpochKind.EPOCH and entry.input_rows]
