"""The numbers behind each plot, from the epochs of a journal. Pure.

The time axis is in seconds since the first epoch began, without the time that no driver was there. A long
journal is thinned: neighbouring epochs share a point, so that a page stays small. A point keeps what matters
of its epochs: the sum of rows, the most memory, the last of what only grows.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from spillway.manager.journal import PHASES, EpochEntry
from spillway.model import members


@dataclass(frozen=True, slots=True)
class RunningTime:
    begins: tuple[float, ...]
    """When each epoch began."""
    ends: tuple[float, ...]
    restarts: tuple[float, ...]
    """When a new driver took over."""


def running_time(epochs: Sequence[EpochEntry]) -> RunningTime:
    begins: list[float] = []
    ends: list[float] = []
    restarts: list[float] = []
    absent = epochs[0].time if epochs else 0.0
    before: EpochEntry | None = None
    for epoch in epochs:
        begin = epoch.time - absent
        if before is not None and (epoch.token != before.token or begin < ends[-1]):
            if epoch.token != before.token:
                restarts.append(ends[-1])
            absent += begin - ends[-1]  # the driver was away, or the clock was set back
            begin = ends[-1]
        begins.append(begin)
        ends.append(begin + epoch.seconds.total)
        before = epoch
    return RunningTime(tuple(begins), tuple(ends), tuple(restarts))


POINTS = 1_500
"""The most points of one line."""


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A spill on the memory plot."""

    processor: int
    seconds: float
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class GroupProductivity:
    """Results that a group gave at run time, and the state it took, over all its generations."""

    group: int
    results: int
    bytes: int
    spills: int

    @property
    def results_per_byte(self) -> float:
        return self.results / self.bytes if self.bytes else 0.0


def throughput(epochs: Sequence[EpochEntry], time: RunningTime) -> Line:
    """Input rows per second, from the beginning of one epoch with input to that of the next."""
    taking = [n for n, epoch in enumerate(epochs) if not epoch.is_cleanup]
    seconds, values = [], []
    for part in _parts(len(taking)):
        chosen = [taking[n] for n in part]
        span = sum(epochs[n].seconds.total for n in chosen)
        seconds.append(time.ends[chosen[-1]])
        values.append(sum(epochs[n].input_rows for n in chosen) / max(span, 1e-9))
    return Line("input rows per second", tuple(seconds), tuple(values))


def memory(epochs: Sequence[EpochEntry], time: RunningTime) -> tuple[Line, ...]:
    """Resident state per processor in bytes: at the end of each epoch, and after each spill."""
    count = 1 + max((part.processor for epoch in epochs for part in epoch.processors), default=-1)
    return tuple(_memory(processor, epochs, time) for processor in range(count))


def _memory(processor: int, epochs: Sequence[EpochEntry], time: RunningTime) -> Line:
    points: list[tuple[float, int]] = []
    for n, epoch in enumerate(epochs):
        for spill in epoch.spills:
            if spill.processor == processor:
                points.append((time.begins[n], spill.resident_bytes))
                points.append((time.begins[n], spill.resident_bytes - spill.bytes))
        points.extend(
            (time.ends[n], part.resident_bytes) for part in epoch.processors if part.processor == processor
        )
    thinned = [(points[part[-1]][0], max(points[n][1] for n in part)) for part in _parts(len(points))]
    return Line(f"processor {processor}", tuple(s for s, _ in thinned), tuple(v for _, v in thinned))


def spill_marks(epochs: Sequence[EpochEntry], time: RunningTime) -> tuple[Mark, ...]:
    return tuple(
        Mark(spill.processor, time.begins[n], spill.resident_bytes)
        for n, epoch in enumerate(epochs)
        for spill in epoch.spills
    )


def results(epochs: Sequence[EpochEntry], time: RunningTime) -> tuple[Line, Line]:
    """Results so far: at run time, and in clean-up."""
    at_run_time = [0 if epoch.is_cleanup else epoch.results for epoch in epochs]
    in_cleanup = [epoch.results if epoch.is_cleanup else 0 for epoch in epochs]
    return _growing("at run time", at_run_time, time), _growing("in clean-up", in_cleanup, time)


def lateness(epochs: Sequence[EpochEntry], time: RunningTime) -> tuple[Line, ...]:
    """Late and expired rows so far; empty if there were none."""
    lines = (
        _growing("late rows", [epoch.late_rows for epoch in epochs], time),
        _growing("expired rows", [epoch.expired_rows for epoch in epochs], time),
    )
    return tuple(line for line in lines if line.values and line.values[-1] > 0)


def phases(epochs: Sequence[EpochEntry], time: RunningTime) -> tuple[Line, ...]:
    """Seconds per epoch in each phase."""
    parts = _parts(len(epochs))
    seconds = tuple(time.ends[part[-1]] for part in parts)
    return tuple(
        Line(
            phase,
            seconds,
            tuple(sum(getattr(epochs[n].seconds, phase) for n in part) / len(part) for part in parts),
        )
        for phase in PHASES
    )


def productivity(epochs: Sequence[EpochEntry]) -> tuple[GroupProductivity, ...]:
    """By group; empty if the journal lacks the bytes of groups."""
    sizes: Counter[int] = Counter()
    produced: Counter[int] = Counter()
    spills: Counter[int] = Counter()
    for epoch in epochs:
        for spill in epoch.spills:
            spills.update(members(spill.groups))
        if not epoch.is_cleanup:
            for part in epoch.processors:
                sizes.update(part.group_bytes)
                produced.update(part.group_results)
    return tuple(
        GroupProductivity(group, produced[group], sizes[group], spills[group]) for group in sorted(sizes)
    )


def _growing(label: str, values: Sequence[int], time: RunningTime) -> Line:
    sums = list(accumulate(values))
    last = [part[-1] for part in _parts(len(values))]
    return Line(label, tuple(time.ends[n] for n in last), tuple(float(sums[n]) for n in last))


def _parts(count: int) -> list[range]:
    """Neighbours that share a point."""
    parts = min(count, POINTS)
    return [range(count * n // parts, count * (n + 1) // parts) for n in range(parts)]
