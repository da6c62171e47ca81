"""Collects what processors report, and makes of it and of the manifest the snapshot that policies see.

A sample is one epoch. Samples begin anew when a round is over or groups have moved, and at most
`SAMPLED_EPOCHS` are kept, so that a long quiet time does not hide a change. How long a round has collected is
counted apart from them, so every round ends.

Steps are taken to start together, and only their lengths are compared: clocks of hosts need not agree.
Known limit: with more processors than cores, steps take turns, and a step that had to share its core looks
busy; then processor time is the better signal.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spillway.manager.budget import Budget
from spillway.manager.relocation.protocol import RelocationManager
from spillway.model import GroupSet, Window, union
from spillway.policy.placement import (
    NEVER,
    PROCESSOR,
    WALL,
    PlacedGroup,
    PlacementSnapshot,
    ProcessorStatistics,
    Progress,
)
from spillway.state.log import GroupState, Manifest
from spillway.state.orders import Report

SAMPLED_EPOCHS = 30
GROWTH_EPOCHS = 3
"""So many samples say how fast state grows."""
MATURE_EPOCHS = 2
"""A younger generation has not shown yet how productive it is; as for spill."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What counts of one epoch, over all processors."""

    span_seconds: float
    """How long the slowest step took."""
    busy_seconds: Mapping[int, float]
    group_rows: Mapping[int, int]
    group_results: Mapping[int, int]
    group_bytes: Mapping[int, int]
    """State that came."""
    arrived_rows: Mapping[int, int] = field(default_factory=dict)
    """Per processor, if the epoch had new input."""


@dataclass(slots=True)
class PlacementStatistics:
    signal: str = WALL
    collected_seconds: float = 0.0
    """Since the statistics began anew."""
    samples: deque[Sample] = field(default_factory=deque)
    resident_bytes: dict[int, int] = field(default_factory=dict)
    group_rows: Counter[int] = field(default_factory=Counter)
    """Of all samples together."""
    group_results: Counter[int] = field(default_factory=Counter)

    def observe(self, reports: Sequence[Report], epoch_seconds: float) -> None:
        """Take in an epoch with input; an epoch that only cleans up says nothing about load."""
        rows: Counter[int] = Counter()
        results: Counter[int] = Counter()
        sizes: Counter[int] = Counter()
        for report in reports:
            rows.update(report.rows_by_group)
            results.update(report.group_results)
            sizes.update(report.group_bytes)
        span = max((report.wall_seconds for report in reports), default=0.0)
        busy = {report.processor: self._busy(report) for report in reports}
        arrived = {report.processor: report.input_rows for report in reports}
        if len(self.samples) == SAMPLED_EPOCHS:
            oldest = self.samples.popleft()
            self.group_rows.subtract(oldest.group_rows)
            self.group_results.subtract(oldest.group_results)
        self.samples.append(
            Sample(span, busy, rows, results, sizes, arrived if any(arrived.values()) else {})
        )
        self.collected_seconds += epoch_seconds
        self.group_rows.update(rows)
        self.group_results.update(results)
        self.resident_bytes = {report.processor: report.resident_bytes for report in reports}

    def _busy(self, report: Report) -> float:
        """What was not idle: the span of the epoch less the wait for the slowest step."""
        return report.busy_seconds if self.signal == PROCESSOR else report.wall_seconds

    def arrived_rows(self) -> dict[int, list[int]]:
        """Rows per processor in each sampled epoch with input."""
        arrived: dict[int, list[int]] = {}
        for sample in self.samples:
            for processor, rows in sample.arrived_rows.items():
                arrived.setdefault(processor, []).append(rows)
        return arrived

    def growth_bytes(self, placement: Sequence[int]) -> dict[int, float] | None:
        """State that comes to each processor in an epoch, by the groups it has now; None: not known yet."""
        if len(self.samples) < GROWTH_EPOCHS:
            return None
        growth = dict.fromkeys(placement, 0.0)
        for sample in self.samples:
            for group, size in sample.group_bytes.items():
                growth[placement[group]] += size / len(self.samples)
        return growth

    def begin_anew(self) -> None:
        self.samples.clear()
        self.collected_seconds = 0.0
        self.group_rows.clear()
        self.group_results.clear()

    def snapshot(
        self,
        manifest: Manifest,
        budgets: Mapping[int, Budget | None],
        relocation: RelocationManager,
        now_seconds: float,
        windows: Sequence[Window] = (),
    ) -> PlacementSnapshot:
        """`budgets` has every processor there is, also one that has no group yet."""
        fixed = fixed_groups(manifest) | relocation.moving
        groups = tuple(
            PlacedGroup(
                group,
                owner,
                bytes=state.bytes,
                rows=state.rows,
                results=state.results,
                sampled_rows=self.group_rows[group],
                sampled_results=self.group_results[group],
                spilled_bytes=state.spilled_bytes,
                suspended=bool(manifest.suspended >> group & 1),
                movable=not fixed >> group & 1,
                mature=manifest.sequence + 1 - state.born_epoch >= MATURE_EPOCHS,
            )
            for group, owner in enumerate(manifest.placement)
            for state in (manifest.groups.get(group, GroupState()),)
        )
        processors = tuple(
            self._processor(processor, budget, manifest, relocation)
            for processor, budget in sorted(budgets.items())
        )
        return PlacementSnapshot(
            now_seconds,
            manifest.sequence + 1,
            processors,
            groups,
            collection_seconds=relocation.collection_seconds,
            collected_seconds=self.collected_seconds,
            forced_bytes=relocation.forced_bytes,
            progress=_progress(manifest, windows),
        )

    def _processor(
        self, processor: int, budget: Budget | None, manifest: Manifest, relocation: RelocationManager
    ) -> ProcessorStatistics:
        table = relocation.table
        queue = manifest.pending.get(processor, ())
        return ProcessorStatistics(
            processor,
            resident_bytes=self._resident(processor, manifest),
            state_limit_bytes=None if budget is None else budget.state_bytes,
            memory_bytes=None if budget is None else budget.memory_bytes,
            busy_seconds=sum(sample.busy_seconds.get(processor, 0.0) for sample in self.samples),
            span_seconds=sum(sample.span_seconds for sample in self.samples),
            pending_rows=sum(entry.rows_left for entry in queue),
            pending_bytes=sum(entry.bytes_left for entry in queue),
            adapted_seconds=relocation.adapted_seconds.get(processor, NEVER),
            incoming_bytes=sum(one.left_bytes for one in table if one.move.receiver == processor),
            outgoing_bytes=sum(one.move.bytes for one in table if one.move.sender == processor),
        )

    def _resident(self, processor: int, manifest: Manifest) -> int:
        """What the processor reported, and at least what the manifest says it has to have."""
        known = sum(
            state.bytes
            for group, state in manifest.groups.items()
            if manifest.placement[group] == processor and not manifest.suspended >> group & 1
        )
        return max(known, self.resident_bytes.get(processor, 0))


def _progress(manifest: Manifest, windows: Sequence[Window]) -> Progress:
    """How far the input is: by rows, and by event time where all inputs have windows."""
    taken = manifest.counters.input_rows
    own = [window for window in windows if not window.derived]
    ranges = [window.range_us + window.lateness_us for window in own if window.range_us is not None]
    times = [
        run.times
        for run in manifest.runs.values()
        if run.times is not None and not windows[run.input].derived
    ]
    if not own or len(ranges) < len(own) or not times:
        return Progress(taken)
    passed = max(one.latest for one in times) - min(one.earliest for one in times)
    return Progress(taken, passed / 1e6, max(ranges) / 1e6)


def fixed_groups(manifest: Manifest) -> GroupSet:
    """Groups that must stay where they are for now: inside a row, or half cleaned up."""
    return manifest.mid_row_groups | union(cursor.groups for cursor in manifest.cursors)
