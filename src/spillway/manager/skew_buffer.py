"""The transient skew buffer (Flux, section 4): how many rows each processor takes in during the next epoch.

Processors wait for each other at the end of an epoch. A processor that is slower than the others parks the
rows beyond its quota and catches up when it has less to do; relocation handles skew that lasts. The quota
follows from measured rates and is part of the orders, so a repeated epoch parks the same rows. What is parked
is bounded: a full buffer lets out at least as much as comes in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillway.policy.placement import PlacementSnapshot, ProcessorStatistics


@dataclass(frozen=True, slots=True)
class SkewLimits:
    """When a processor parks rows. Both defaults are ours."""

    slack: float = 1.25
    """How many times as long as the average a processor may take before it parks."""
    minimum_rows: int = 1_000
    """Rows that a processor takes in per epoch in any case."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """The work that a processor is expected to have in the next epoch."""

    arriving_rows: float
    pending_rows: int
    row_bytes: float
    seconds_per_row: float

    @property
    def arriving_seconds(self) -> float:
        return self.arriving_rows * self.seconds_per_row


def quotas(
    snapshot: PlacementSnapshot,
    arrived_rows: Mapping[int, Sequence[int]],
    buffer_bytes: int,
    limits: SkewLimits,
) -> dict[int, int]:
    """How many rows each slow processor takes in; processors without a quota take in everything.

    `arrived_rows` are the rows that arrived at each processor in the last epochs with input.
    """
    if buffer_bytes <= 0 or len(snapshot.processors) < 2:
        return {}
    expected = {
        processor.processor: _Expected(
            _mean(arrived_rows.get(processor.processor, ())),
            processor.pending_rows,
            _row_bytes(snapshot, processor),
            snapshot.seconds_per_row(processor.processor),
        )
        for processor in snapshot.processors
    }
    average = sum(work.arriving_seconds for work in expected.values()) / len(expected)
    if average <= 0:
        return {}
    found = {}
    for processor, work in expected.items():
        needed = (work.arriving_rows + work.pending_rows) * work.seconds_per_row
        if needed <= limits.slack * average:
            continue
        in_time = limits.slack * average / work.seconds_per_row
        overflowing = work.arriving_rows + work.pending_rows - buffer_bytes / work.row_bytes
        found[processor] = int(max(in_time, overflowing, limits.minimum_rows))
    return found


def _row_bytes(snapshot: PlacementSnapshot, processor: ProcessorStatistics) -> float:
    """The size of a parked row, or of a row of state while nothing is parked."""
    if processor.pending_rows and processor.pending_bytes:
        return processor.pending_bytes / processor.pending_rows
    groups = snapshot.groups_of(processor.processor)
    return max(1.0, sum(group.bytes for group in groups) / max(1, sum(group.rows for group in groups)))


def _mean(rows: Sequence[int]) -> float:
    return sum(rows) / len(rows) if rows else 0.0
