"""One epoch as the manifest records it: what was added, replaced, spilled, cleaned up and counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.model import GroupSet, listed
from spillway.state.rows import Cursor, Pending, Run


@listed()
@dataclass(frozen=True, slots=True)
class Counters:
    """Totals over all committed epochs."""

    input_rows: int = 0
    results_runtime: int = 0
    results_cleanup: int = 0
    epochs: int = 0
    spills: int = 0
    relocations: int = 0
    late_rows: int = 0
    expired_rows: int = 0
    null_time_rows: int = 0
    spilled_bytes: int = 0
    """What went to disk only: generations that ended, and rows that were only written."""
    read_bytes: int = 0
    """What clean-up has read of it."""

    def plus(self, other: "Counters") -> "Counters":
        return Counters(
            self.input_rows + other.input_rows,
            self.results_runtime + other.results_runtime,
            self.results_cleanup + other.results_cleanup,
            self.epochs + other.epochs,
            self.spills + other.spills,
            self.relocations + other.relocations,
            self.late_rows + other.late_rows,
            self.expired_rows + other.expired_rows,
            self.null_time_rows + other.null_time_rows,
            self.spilled_bytes + other.spilled_bytes,
            self.read_bytes + other.read_bytes,
        )


ResultFiles = tuple[tuple[str, int, int], ...]
"""Name in the sink's staging area, rows, bytes."""


@listed()
@dataclass(frozen=True, slots=True)
class OwedEpoch:
    """The result files of an epoch that a sink may lack."""

    sequence: int
    files: ResultFiles


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """The change of one epoch."""

    sequence: int
    token: int
    batch_id: int | None
    """The Spark batch that this epoch took in, whole; None for an epoch without new input."""
    added: tuple[Run, ...]
    replaced: tuple[tuple[str, GroupSet], ...]
    pending: Mapping[int, tuple[Pending, ...]]
    """The whole queue of every processor."""
    files: Mapping[str, ResultFiles]
    """Of each result, by its name."""
    counters: Counters
    placement: tuple[int, ...] | None = None
    """The processor of each group, if it changes with this epoch."""
    processors: int | None = None
    """How many processors there are from this epoch on; None: those of the placement."""
    spilled: GroupSet = 0
    """Groups whose generation ended before this epoch."""
    grown: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per group that had input or results: rows, bytes, results."""
    collected: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Per group of which rows were only written: rows, bytes."""
    cursors: tuple[Cursor, ...] = ()
    """Batches of groups whose clean-up is under way after this epoch."""
    cleaned: GroupSet = 0
    """Groups whose clean-up was finished by this epoch; all their rows are one generation on disk now."""
    restored: GroupSet = 0
    """The same, but they are one generation in memory now."""
    shrunk: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Per group of which rows in memory expired: rows, bytes."""
    dropped: tuple[tuple[str, GroupSet], ...] = ()
    """Slices on disk that expired."""
    latest: tuple[int | None, ...] = ()
    """The youngest event time ever taken in, per input, in microseconds."""
    watermark: int | None = None
    """No row older than this is taken in after this epoch."""
    suspended: GroupSet = 0
    """Groups that are suspended from this epoch on."""
    delivered: Mapping[str, int] = field(default_factory=dict)
    """Per result, the last epoch that its sink had before this one."""
    lineage: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per group of a tree: results of the view that came through it, rows and bytes that joins above keep."""
