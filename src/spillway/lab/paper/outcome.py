"""The outcome of one run of an experiment, from its journal. Pure.

The horizontal axis is mostly the arrival time of the rows probed so far, not the clock, as in the
dissertation: so runs can be compared even if another program slowed one down. Comparisons of cost use the
clock. Results that clean-up produced during the run are counted apart from those of the run itself.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from spillway.lab.engines import STREAMS
from spillway.lab.paper.experiment import PARTITIONS, ROW_SECONDS, Variant
from spillway.manager.journal import EpochEntry
from spillway.model import members, union
from spillway.policy import distributed
from spillway.workload import STREAMS as TREE_STREAMS

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    variant: Variant
    runtime_results: int
    cleanup_results: int
    early_cleanup_results: int
    """Those of them that clean-up produced before the input was exhausted, because memory was free."""
    runtime_seconds: float
    cleanup_seconds: float
    spills: int
    spilled_bytes: int
    state_bytes: int
    """All state that was ever built: the memory needed without spills."""
    results: Points
    """(minutes of arrivals, results so far), without those of clean-up."""
    memory: Points
    """(minutes of arrivals, resident bytes): each spill is a fall."""
    relocations: int = 0
    cleanup_rows: tuple[int, ...] = ()
    """Per processor, the rows of its groups that were ever spilled: what it would have to clean up alone."""
    spilled_groups: tuple[int, ...] = ()
    """All spilled groups, with repetitions."""
    memory_each: tuple[Points, ...] = ()
    """`memory` of each processor."""
    freed_share: float = 0.0
    """The share of its processor's state that a spill freed on average."""
    early_cleanup: Points = ((0.0, 0.0),)
    """(minutes of arrivals, results of clean-up so far), before the input was exhausted."""
    results_by_clock: Points = ((0.0, 0.0),)
    """(seconds since the run began, results so far), without those of clean-up at the end."""
    restored: Points = ()
    """(minutes of arrivals, resident bytes) after each clean-up during the run."""
    complete: bool = True
    """False if the run was stopped before its clean-up was done."""
    stopped: str | None = None
    """Why it ended before its input did."""

    @property
    def wall_seconds(self) -> float:
        """Seconds from the start of the run to the end of its input."""
        return self.results_by_clock[-1][0]

    @property
    def minutes(self) -> float:
        """Minutes of arrivals that the run processed."""
        return self.results[-1][0]

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
            "freed_share": round(self.freed_share, 3),
            "state_bytes": self.state_bytes,
            "relocations": self.relocations,
            "cleanup_rows": list(self.cleanup_rows),
            "wall_seconds": round(self.wall_seconds, 3),
            "stopped": self.stopped,
        }


def outcome(variant: Variant, epochs: Sequence[EpochEntry], row_seconds: float = ROW_SECONDS) -> Outcome:
    last_input = max((n for n, epoch in enumerate(epochs) if not epoch.is_cleanup), default=-1)
    spills = [spill for epoch in epochs for spill in epoch.spills]
    parts = [processor for epoch in epochs for processor in epoch.processors]
    minutes = _minutes(epochs[: last_input + 1], row_seconds)
    return Outcome(
        variant=variant,
        runtime_results=sum(epoch.results for epoch in epochs if not epoch.is_cleanup),
        cleanup_results=sum(epoch.results for epoch in epochs if epoch.is_cleanup),
        early_cleanup_results=sum(epoch.results for epoch in epochs[:last_input] if epoch.is_cleanup),
        runtime_seconds=sum(epoch.seconds.total for epoch in epochs if not epoch.is_cleanup),
        cleanup_seconds=sum(epoch.seconds.total for epoch in epochs if epoch.is_cleanup),
        spills=len(spills),
        spilled_bytes=sum(spill.bytes for spill in spills),
        freed_share=sum(spill.bytes / max(1, spill.resident_bytes) for spill in spills) / max(1, len(spills)),
        state_bytes=sum(sum(part.group_bytes.values()) for part in parts),
        results=_results(epochs, minutes, cleanup=False),
        early_cleanup=_results(epochs, minutes, cleanup=True),
        results_by_clock=_by_clock(epochs[: last_input + 1]),
        restored=_restored(epochs, minutes),
        memory=_memory(epochs, minutes, None),
        relocations=sum(len(epoch.relocation.switched) for epoch in epochs),
        spilled_groups=tuple(group for spill in spills for group in members(spill.groups)),
        cleanup_rows=_cleanup_rows(variant, epochs),
        memory_each=tuple(_memory(epochs, minutes, number) for number in range(variant.processors)),
    )


def tree_outcome(variant: Variant, epochs: Sequence[EpochEntry], row_seconds: float) -> Outcome:
    """The outcome of a tree, whose joins also probe each other's results: time counts arrived rows."""
    made = outcome(variant, epochs, row_seconds)
    last_input = max((n for n, epoch in enumerate(epochs) if not epoch.is_cleanup), default=-1)
    minutes, taken = [], 0
    for epoch in epochs[: last_input + 1]:
        before = taken
        taken += epoch.input_rows
        began, ended = (rows / len(TREE_STREAMS) * row_seconds / 60 for rows in (before, taken))
        minutes.append((began, ended))
    return replace(
        made,
        results=_results(epochs, minutes, cleanup=False),
        early_cleanup=_results(epochs, minutes, cleanup=True),
        restored=_restored(epochs, minutes),
        memory=_memory(epochs, minutes, None),
        memory_each=tuple(_memory(epochs, minutes, number) for number in range(variant.processors)),
    )


def _minutes(epochs: Sequence[EpochEntry], row_seconds: float) -> list[tuple[float, float]]:
    """When the rows arrived that each epoch began and ended with."""
    found, taken = [], 0
    for epoch in epochs:
        before = taken
        if not epoch.is_cleanup:
            taken += sum(processor.probed_rows for processor in epoch.processors)
        found.append(tuple(rows / len(STREAMS) * row_seconds / 60 for rows in (before, taken)))
    return [(began, ended) for began, ended in found]


def _results(
    epochs: Sequence[EpochEntry], minutes: Sequence[tuple[float, float]], *, cleanup: bool
) -> Points:
    """The results so far of the run itself, or of clean-up during it."""
    points, produced = [(0.0, 0.0)], 0
    for epoch, (_, ended) in zip(epochs, minutes, strict=False):
        if epoch.is_cleanup is cleanup:
            produced += epoch.results
            points.append((ended, produced))
    return tuple(points)


def _by_clock(epochs: Sequence[EpochEntry]) -> Points:
    points, produced = [(0.0, 0.0)], 0
    for epoch in epochs:
        produced += epoch.results
        points.append((epoch.time + epoch.seconds.total - epochs[0].time, produced))
    return tuple(points)


def _restored(epochs: Sequence[EpochEntry], minutes: Sequence[tuple[float, float]]) -> Points:
    return tuple(
        (ended, sum(processor.resident_bytes for processor in epoch.processors))
        for epoch, (_, ended) in zip(epochs, minutes, strict=False)
        if epoch.is_cleanup
    )


def _memory(
    epochs: Sequence[EpochEntry], minutes: Sequence[tuple[float, float]], processor: int | None
) -> Points:
    """The memory of one processor, or of all together."""
    points = [(0.0, 0.0)]
    for epoch, (began, ended) in zip(epochs, minutes, strict=False):
        points += [
            (began, spill.resident_bytes - spill.bytes)
            for spill in epoch.spills
            if processor in (spill.processor, None)
        ]
        mine = [part.resident_bytes for part in epoch.processors if processor in (part.processor, None)]
        points.append((ended, sum(mine)))
    return tuple(points)


def _cleanup_rows(variant: Variant, epochs: Sequence[EpochEntry]) -> tuple[int, ...]:
    rows: Counter[int] = Counter()
    for epoch in epochs:
        for processor in epoch.processors:
            rows.update(processor.group_rows)
    placement = next(
        (epoch.placement for epoch in reversed(epochs) if epoch.placement is not None),
        distributed(variant.distribution, PARTITIONS, variant.processors),
    )
    spilled = union(spill.groups for epoch in epochs for spill in epoch.spills)
    load = [0] * variant.processors
    for group in members(spilled):
        load[placement[group % len(placement)]] += rows[group]  # all joins of a tree start alike
    return tuple(load)
