"""What a processor is told to do in one epoch, and what it reports back.

Orders are a pure value made by the manager; a report is what the commit row of the epoch carries. Together
with the input they determine everything a task does, so an attempt that is run again does the same.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spillway.model.group_set import GroupSet, from_hex, to_hex
from spillway.state.cursor import Cursor
from spillway.state.pending import Pending
from spillway.state.run import Run

NO_BOUND = 1 << 62
LEAST_SHARE = 0.25
"""Of working memory; less is not taken into account, however large the images are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one processor does in one epoch at most."""

    rows: int = 500_000
    """Input rows that are probed; the rest is parked as pending."""
    results: int = 4_000_000
    """Result rows that are produced; the probe then stops, inside a row if need be."""
    chunk_rows: int = 131_072
    """Result rows that are expanded and written at a time."""
    block_rows: int = 65_536
    """Driving rows that are matched at a time."""
    gather_rows: int = 1_048_576
    """Matched rows of one input that are copied side by side at a time; more are copied chunk by chunk."""
    chunk_bytes: int = NO_BOUND
    """Bytes of results that are expanded and written at a time."""
    gather_bytes: int = NO_BOUND
    """Bytes of matched rows that are copied side by side at a time, and of what it takes to find them."""
    round_bytes: int = NO_BOUND
    """Bytes of input that are probed at a time."""
    memory_bytes: int = NO_BOUND
    """Images and all that is needed besides."""
    state_bytes: int = NO_BOUND
    """When the images take more than this, what is left of the input is parked as pending."""
    pending_bytes: int = 16 << 20
    """Size of one pending file, which is collected in memory."""
    lineage_one_in: int = 1
    """Of how many rows one is counted for the lineage of a tree; 1: all are."""

    def beside(self, image_bytes: int) -> "Limits":
        """What may be in memory at a time besides images of this size, which do not grow meanwhile."""
        if self.memory_bytes >= NO_BOUND:
            return self
        working = self.memory_bytes - self.state_bytes
        share = max(LEAST_SHARE, (self.memory_bytes - image_bytes) / working)
        return replace(
            self,
            chunk_bytes=int(self.chunk_bytes * share),
            gather_bytes=int(self.gather_bytes * share),
            round_bytes=int(self.round_bytes * share),
        )


@dataclass(frozen=True, slots=True)
class CleanupBatch:
    """The clean-up of some groups as ordered: where to go on, and their slices with their generations."""

    cursor: Cursor
    slices: tuple[tuple[Run, tuple[tuple[int, GroupSet], ...]], ...]
    """Runs that hold rows of the groups, oldest first, with the groups of each generation in them."""
    generations: int


@dataclass(frozen=True, slots=True)
class Orders:
    """One processor's part of one epoch."""

    sequence: int
    processor: int
    groups: GroupSet
    """The groups that are placed on this processor."""
    runs: tuple[Run, ...]
    """The runs with live rows of these groups, oldest first, `live` reduced to these groups."""
    merges: tuple[tuple[str, ...], ...]
    """Names of runs, adjacent in age and of one input, to be replaced by one."""
    pending: tuple[Pending, ...]
    limits: Limits
    state: str
    """Root of the durable tier."""
    tier: str
    """Directory of this processor's memory tier."""
    staging: str | None
    """Where result files go; None: results are only counted."""
    run_compression: str | None
    result_compression: str
    free: GroupSet = 0
    """Groups whose memory is given back before anything else: their generation has ended."""
    cleanup: tuple[CleanupBatch, ...] = ()
    """Batches of groups to clean up, in this order."""
    clean: bool = False
    """Whether this is a clean-up epoch, which has no other work."""
    expired: tuple[str, ...] = ()
    """Names of runs whose rows are all too old for their window."""
    watermark: int | None = None
    """Event time in microseconds; arriving rows that are older are late and do not count."""
    keep: GroupSet = 0
    """Groups whose rows must not expire in this epoch."""
    suspended: GroupSet = 0
    """Groups whose state is on disk and whose input is parked until their turn comes."""
    held: tuple[Pending, ...] = ()
    """What is parked for them already."""
    ending: bool = False
    """Whether the input has ended, so that no row waits for the watermark any more."""
    incoming: tuple[Run, ...] = ()
    """Runs to have in memory at the end, `live` reduced to groups that are about to move here."""
    row_seconds: float = 0.0
    """Emulated service time: how long the processor is busy with a row at least."""
    cleaned: GroupSet = 0
    """All groups that this epoch cleans up, on whatever processor."""
    shared_tier: bool = False
    """Whether other joins have their memory tiers beside this one."""
    advances: bool = True
    """Whether some input is taken in even if there is no room, so that not all waits for ever."""


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
    files: tuple[tuple[str, int, int], ...]
    """Result files: name, rows, bytes."""
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
    expired_rows: dict[int, int] = field(default_factory=dict)
    expired_bytes: dict[int, int] = field(default_factory=dict)
    lineage: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per group of a tree, of any processor: results of the view that came through it, and rows and bytes
    that joins above it keep since."""
    wall_seconds: float = 0.0
    """From the start of the step to its end, whatever else ran on the machine meanwhile."""
    served_rows: dict[int, int] | None = None
    """Rows processed by group; None: those that became state, `group_rows`."""

    @property
    def rows_by_group(self) -> dict[int, int]:
        """The rows of each group that took time."""
        return self.group_rows if self.served_rows is None else self.served_rows

    def to_json(self) -> str:
        return json.dumps(
            {
                "processor": self.processor,
                "host": self.host,
                "executor": self.executor,
                "added": [run.to_json() for run in self.added],
                "replaced": [[name, to_hex(groups)] for name, groups in self.replaced],
                "pending": [pending.to_json() for pending in self.pending],
                "files": self.files,
                "input_rows": self.input_rows,
                "probed_rows": self.probed_rows,
                "results": self.results,
                "resident_bytes": self.resident_bytes,
                "loaded_bytes": self.loaded_bytes,
                "busy_seconds": self.busy_seconds,
                "seconds": self.seconds,
                "group_rows": self.group_rows,
                "group_bytes": self.group_bytes,
                "group_results": self.group_results,
                "freed_bytes": self.freed_bytes,
                "peak_bytes": self.peak_bytes,
                "cursors": [cursor.to_json() for cursor in self.cursors],
                "cleaned": to_hex(self.cleaned),
                "restored": to_hex(self.restored),
                "latest": self.latest,
                "late_rows": self.late_rows,
                "expired_rows": self.expired_rows,
                "expired_bytes": self.expired_bytes,
                "lineage": self.lineage,
                "wall_seconds": self.wall_seconds,
                "served_rows": self.served_rows,
            }
        )

    @staticmethod
    def from_json(text: str) -> "Report":
        body = json.loads(text)
        body["added"] = tuple(Run.from_json(fields) for fields in body["added"])
        body["replaced"] = tuple((name, from_hex(groups)) for name, groups in body["replaced"])
        body["pending"] = tuple(Pending.from_json(fields) for fields in body["pending"])
        body["files"] = tuple((name, rows, size) for name, rows, size in body["files"])
        body["latest"] = tuple(body["latest"])
        for key in ("group_rows", "group_bytes", "group_results", "expired_rows", "expired_bytes"):
            body[key] = {int(group): count for group, count in body[key].items()}
        if body["served_rows"] is not None:
            body["served_rows"] = {int(group): count for group, count in body["served_rows"].items()}
        body["lineage"] = {int(group): tuple(counts) for group, counts in body["lineage"].items()}
        body["cursors"] = tuple(Cursor.from_json(fields) for fields in body["cursors"])
        body["cleaned"] = from_hex(body["cleaned"])
        body["restored"] = from_hex(body["restored"])
        return Report(**body)


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


def lineage(reports: Sequence[Report]) -> dict[int, tuple[int, int, int]]:
    """Per group of a tree, over all processors: results through it, rows and bytes held above it."""
    total: dict[int, tuple[int, int, int]] = {}
    for report in reports:
        for group, counts in report.lineage.items():
            before = total.get(group, (0, 0, 0))
            total[group] = (before[0] + counts[0], before[1] + counts[1], before[2] + counts[2])
    return total
