"""What one attempt of one processor's part of an epoch did, as it is sent to the driver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spillway.model import GroupSet
from spillway.state.rows import Cursor, Pending, Run

Files = tuple[tuple[str, int, int], ...]
"""Result files: name in the staging area of their sink, rows, bytes."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one attempt of one processor's part of an epoch did."""

    processor: int
    host: str
    executor: str
    added: tuple[Run, ...]
    replaced: tuple[tuple[str, GroupSet], ...]
    """Run slices that merged runs among `added` stand for now."""
    pending: tuple[Pending, ...]
    """All that is pending on this processor now."""
    files: Mapping[str, Files]
    """Result files, by the name of the result."""
    input_rows: int
    probed_rows: int
    results: int
    resident_bytes: int
    loaded_bytes: int
    busy_seconds: float
    """Processor time."""
    seconds: dict[str, float]
    group_rows: dict[int, int] = field(default_factory=dict)
    group_bytes: dict[int, int] = field(default_factory=dict)
    group_results: dict[int, int] = field(default_factory=dict)
    freed_bytes: int = 0
    peak_bytes: int = 0
    """The most memory at any moment of the step: images, and what the step needed besides them."""
    cursors: tuple[Cursor, ...] = ()
    cleaned: GroupSet = 0
    restored: GroupSet = 0
    latest: tuple[int | None, ...] = ()
    """The youngest event time that arrived, per input; nothing in views without windows."""
    late_rows: int = 0
    null_time_rows: int = 0
    """Rows that have no event time, in views that go by it: they give no results."""
    expired_rows: dict[int, int] = field(default_factory=dict)
    expired_bytes: dict[int, int] = field(default_factory=dict)
    lineage: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per group of a tree, of any processor: results of the view that came through it, and rows and bytes
    that joins above it keep since."""
    wall_seconds: float = 0.0
    """From the start of the step to its end, whatever else ran on the machine meanwhile."""
    collected_rows: dict[int, int] = field(default_factory=dict)
    """Per group, rows that were only written."""
    collected_bytes: dict[int, int] = field(default_factory=dict)
    read_bytes: int = 0
    """What a clean-up read of the state on disk."""
    work: int = 0
    """Combinations that were tried, and rows that a clean-up read."""
    served_rows: dict[int, int] | None = None
    """Rows processed by group; None: those that became state, `group_rows`."""

    @property
    def rows_by_group(self) -> dict[int, int]:
        """The rows of each group that took time."""
        return self.group_rows if self.served_rows is None else self.served_rows


def grown(reports: Sequence[Report]) -> dict[int, tuple[int, int, int]]:
    """Per group that had input or results in an epoch: rows, bytes, results."""
    return {
        group: (
            report.group_rows.get(group, 0),
            report.group_bytes.get(group, 0),
            report.group_results.get(group, 0),
        )
        for report in reports
        for group in sorted(set(report.group_rows) | set(report.group_results))
    }


def collected(reports: Sequence[Report]) -> dict[int, tuple[int, int]]:
    """Per group of which rows were only written: rows, bytes."""
    return {
        group: (rows, report.collected_bytes.get(group, 0))
        for report in reports
        for group, rows in sorted(report.collected_rows.items())
    }


def lineage(reports: Sequence[Report]) -> dict[int, tuple[int, int, int]]:
    """Per group of a tree, over all processors: results through it, rows and bytes held above it."""
    total: dict[int, tuple[int, int, int]] = {}
    for report in reports:
        for group, counts in report.lineage.items():
            before = total.get(group, (0, 0, 0))
            total[group] = (before[0] + counts[0], before[1] + counts[1], before[2] + counts[2])
    return total
