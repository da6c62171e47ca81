"""One epoch as the manifest records it: what was added, replaced, spilled, cleaned up and counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spillway.model import GroupSet, from_hex, to_hex
from spillway.state.log.cursor import Cursor
from spillway.state.rows import Pending, Run


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
        )

    def to_json(self) -> list[int]:
        return [
            self.input_rows,
            self.results_runtime,
            self.results_cleanup,
            self.epochs,
            self.spills,
            self.relocations,
            self.late_rows,
            self.expired_rows,
            self.null_time_rows,
        ]


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
    files: tuple[tuple[str, int, int], ...]
    """Result files: name in the sink's staging area, rows, bytes."""
    counters: Counters
    placement: tuple[int, ...] | None = None
    """The processor of each group, if it changes with this epoch."""
    processors: int | None = None
    """How many processors there are from this epoch on; None: those of the placement."""
    spilled: GroupSet = 0
    """Groups whose generation ended before this epoch."""
    grown: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per group that had input or results: rows, bytes, results."""
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
    lineage: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per group of a tree: results of the view that came through it, rows and bytes that joins above keep."""

    def to_json(self) -> dict[str, Any]:
        return {
            "sequence": self.sequence,
            "token": self.token,
            "batch_id": self.batch_id,
            "added": [run.to_json() for run in self.added],
            "replaced": [[name, to_hex(groups)] for name, groups in self.replaced],
            "pending": _pending_to_json(self.pending),
            "files": [list(file) for file in self.files],
            "counters": self.counters.to_json(),
            "placement": None if self.placement is None else list(self.placement),
            "processors": self.processors,
            "spilled": to_hex(self.spilled),
            "grown": {str(group): list(counts) for group, counts in self.grown.items()},
            "cursors": [cursor.to_json() for cursor in self.cursors],
            "cleaned": to_hex(self.cleaned),
            "restored": to_hex(self.restored),
            "shrunk": {str(group): list(counts) for group, counts in self.shrunk.items()},
            "dropped": [[name, to_hex(groups)] for name, groups in self.dropped],
            "latest": list(self.latest),
            "watermark": self.watermark,
            "suspended": to_hex(self.suspended),
            "lineage": {str(group): list(counts) for group, counts in self.lineage.items()},
        }

    @staticmethod
    def from_json(body: dict[str, Any]) -> "EpochRecord":
        return EpochRecord(
            sequence=body["sequence"],
            token=body["token"],
            batch_id=body["batch_id"],
            added=tuple(Run.from_json(fields) for fields in body["added"]),
            replaced=tuple((name, from_hex(groups)) for name, groups in body["replaced"]),
            pending=_pending_from_json(body["pending"]),
            files=tuple((name, rows, size) for name, rows, size in body["files"]),
            counters=Counters(*body["counters"]),
            placement=None if body["placement"] is None else tuple(body["placement"]),
            processors=body["processors"],
            spilled=from_hex(body["spilled"]),
            grown={int(group): (rows, size, out) for group, (rows, size, out) in body["grown"].items()},
            cursors=tuple(Cursor.from_json(fields) for fields in body["cursors"]),
            cleaned=from_hex(body["cleaned"]),
            restored=from_hex(body["restored"]),
            shrunk={int(group): (rows, size) for group, (rows, size) in body["shrunk"].items()},
            dropped=tuple((name, from_hex(groups)) for name, groups in body["dropped"]),
            latest=tuple(body["latest"]),
            watermark=body["watermark"],
            suspended=from_hex(body["suspended"]),
            lineage={int(group): (n, rows, size) for group, (n, rows, size) in body["lineage"].items()},
        )


def _pending_to_json(pending: Mapping[int, tuple[Pending, ...]]) -> dict[str, Any]:
    return {str(processor): [entry.to_json() for entry in queue] for processor, queue in pending.items()}


def _pending_from_json(body: dict[str, Any]) -> dict[int, tuple[Pending, ...]]:
    return {
        int(processor): tuple(Pending.from_json(fields) for fields in queue)
        for processor, queue in body.items()
    }
