"""What one run of an experiment came to, as its journal tells it. Pure.

The horizontal axis is the arrival time of the rows probed so far, not the clock: so lines of runs that
another program slowed down can be compared, and the axis is that of the seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spillway.figure.experiment import ROW_SECONDS, STREAMS, Variant
from spillway.report.epoch import Epoch

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    variant: Variant
    runtime_results: int
    cleanup_results: int
    early_cleanup_results: int
    """Of these, produced by clean-up before the input was exhausted, because memory was free."""
    runtime_seconds: float
    cleanup_seconds: float
    spills: int
    spilled_bytes: int
    state_bytes: int
    """All state that was ever built: what memory would have had to hold."""
    results: Points
    """(minutes of arrivals, results so far)."""
    memory: Points
    """(minutes of arrivals, resident bytes): each spill is a fall."""

    @property
    def results_total(self) -> int:
        return self.runtime_results + self.cleanup_results

    def to_json(self) -> dict[str, Any]:
        return {
            "runtime_results": self.runtime_results,
            "cleanup_results": self.cleanup_results,
            "early_cleanup_results": self.early_cleanup_results,
            "results_total": self.results_total,
            "runtime_seconds": round(self.runtime_seconds, 3),
            "cleanup_seconds": round(self.cleanup_seconds, 3),
            "spills": self.spills,
            "spilled_bytes": self.spilled_bytes,
            "state_bytes": self.state_bytes,
        }


def outcome(variant: Variant, epochs: Sequence[Epoch]) -> Outcome:
    last_input = max((n for n, epoch in enumerate(epochs) if not epoch.is_cleanup), default=-1)
    spills = [spill for epoch in epochs for spill in epoch.spills]
    parts = [one for epoch in epochs for one in epoch.processors]
    results, memory = _curves(epochs[: last_input + 1])
    return Outcome(
        variant=variant,
        runtime_results=sum(epoch.results for epoch in epochs if not epoch.is_cleanup),
        cleanup_results=sum(epoch.results for epoch in epochs if epoch.is_cleanup),
        early_cleanup_results=sum(epoch.results for epoch in epochs[:last_input] if epoch.is_cleanup),
        runtime_seconds=sum(epoch.seconds for epoch in epochs if not epoch.is_cleanup),
        cleanup_seconds=sum(epoch.seconds for epoch in epochs if epoch.is_cleanup),
        spills=len(spills),
        spilled_bytes=sum(spill.bytes for spill in spills),
        state_bytes=sum(sum(one.group_bytes.values()) for one in parts),
        results=results,
        memory=memory,
    )


def _curves(epochs: Sequence[Epoch]) -> tuple[Points, Points]:
    results: list[tuple[float, float]] = [(0.0, 0.0)]
    memory: list[tuple[float, float]] = [(0.0, 0.0)]
    taken = produced = 0
    for epoch in epochs:
        minutes = taken / len(STREAMS) * ROW_SECONDS / 60
        memory.extend((minutes, spill.resident_bytes - spill.bytes) for spill in epoch.spills)
        if not epoch.is_cleanup:
            taken += sum(one.probed_rows for one in epoch.processors)
        produced += epoch.results
        minutes = taken / len(STREAMS) * ROW_SECONDS / 60
        results.append((minutes, produced))
        memory.append((minutes, sum(one.resident_bytes for one in epoch.processors)))
    return tuple(results), tuple(memory)
