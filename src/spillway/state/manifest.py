"""The manifest: what is committed. A fold of epoch records over an initial state.

A record says what one epoch changed; `apply` is the only place where committed state changes. Everything
else (memory tier, staged files, the sink) is either derived from it or waits for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spillway.errors import StateError
from spillway.model.group_set import GroupSet, from_hex, to_hex
from spillway.state.pending import Pending
from spillway.state.run import Run

NO_BATCH = -1


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals over all committed epochs."""

    input_rows: int = 0
    results_runtime: int = 0
    results_cleanup: int = 0
    epochs: int = 0
    spills: int = 0
    relocations: int = 0

    def plus(self, other: "Counters") -> "Counters":
        return Counters(
            self.input_rows + other.input_rows,
            self.results_runtime + other.results_runtime,
            self.results_cleanup + other.results_cleanup,
            self.epochs + other.epochs,
            self.spills + other.spills,
            self.relocations + other.relocations,
        )

    def to_json(self) -> list[int]:
        return [
            self.input_rows,
            self.results_runtime,
            self.results_cleanup,
            self.epochs,
            self.spills,
            self.relocations,
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
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The committed state after epoch `sequence`."""

    sequence: int
    batch_id: int
    placement: tuple[int, ...]
    runs: Mapping[str, Run] = field(default_factory=dict)
    pending: Mapping[int, tuple[Pending, ...]] = field(default_factory=dict)
    counters: Counters = Counters()

    def apply(self, record: EpochRecord) -> "Manifest":
        if record.sequence != self.sequence + 1:
            raise StateError(f"epoch {record.sequence} cannot follow epoch {self.sequence} in the manifest")
        runs = dict(self.runs)
        for name, groups in record.replaced:
            runs[name] = replace(runs[name], live=runs[name].live & ~groups)
        for run in record.added:
            runs[run.name] = run
        return Manifest(
            sequence=record.sequence,
            batch_id=self.batch_id if record.batch_id is None else record.batch_id,
            placement=self.placement if record.placement is None else record.placement,
            runs={name: run for name, run in runs.items() if run.live or run.spilled},
            pending={processor: queue for processor, queue in record.pending.items() if queue},
            counters=self.counters.plus(record.counters),
        )

    def files(self) -> set[str]:
        """The state files that this manifest refers to."""
        return set(self.runs) | {pending.name for queue in self.pending.values() for pending in queue}

    @property
    def pending_rows(self) -> int:
        return sum(pending.rows_left for queue in self.pending.values() for pending in queue)

    def to_json(self) -> dict[str, Any]:
        return {
            "sequence": self.sequence,
            "batch_id": self.batch_id,
            "placement": list(self.placement),
            "runs": [run.to_json() for run in self.runs.values()],
            "pending": _pending_to_json(self.pending),
            "counters": self.counters.to_json(),
        }

    @staticmethod
    def from_json(body: dict[str, Any]) -> "Manifest":
        runs: Iterable[Run] = (Run.from_json(fields) for fields in body["runs"])
        return Manifest(
            sequence=body["sequence"],
            batch_id=body["batch_id"],
            placement=tuple(body["placement"]),
            runs={run.name: run for run in runs},
            pending=_pending_from_json(body["pending"]),
            counters=Counters(*body["counters"]),
        )


def _pending_to_json(pending: Mapping[int, tuple[Pending, ...]]) -> dict[str, Any]:
    return {str(processor): [entry.to_json() for entry in queue] for processor, queue in pending.items()}


def _pending_from_json(body: dict[str, Any]) -> dict[int, tuple[Pending, ...]]:
    return {
        int(processor): tuple(Pending.from_json(fields) for fields in queue)
        for processor, queue in body.items()
    }
