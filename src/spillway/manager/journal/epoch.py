"""An epoch read from the journal: the part of an entry that a report needs, checked and typed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.errors import StateError
from spillway.manager.journal.file import read_journal

PHASES = ("order", "execute", "commit", "sink")
"""What an epoch's time is made of, in this order."""


@dataclass(frozen=True, slots=True)
class SpillEvent:
    processor: int
    groups: tuple[int, ...]
    bytes: int
    resident_bytes: int
    """State of the processor before the spill."""
    reason: str


@dataclass(frozen=True, slots=True)
class SwapEvent:
    """Groups that changed places by rotation."""

    processor: int
    suspended: tuple[int, ...]
    resumed: tuple[int, ...]
    suspended_bytes: int
    resumed_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class ProcessorPart:
    """One processor's part of an epoch."""

    processor: int
    resident_bytes: int
    probed_rows: int
    group_bytes: Mapping[int, int]
    """State that the epoch added, by group; journals of old versions do not have it."""
    group_results: Mapping[int, int]
    group_rows: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Epoch:
    sequence: int
    token: int | None
    """Of the driver that ran it: it changes with every restart."""
    is_cleanup: bool
    began: float
    """Seconds since 1970."""
    seconds: float
    phases: Mapping[str, float]
    input_rows: int
    results: int
    late_rows: int
    expired_rows: int
    pending_rows: int
    budget_bytes: int | None
    state_bytes: int | None
    processors: tuple[ProcessorPart, ...]
    spills: tuple[SpillEvent, ...]
    swaps: tuple[SwapEvent, ...] = ()
    relocations: int = 0
    """Moves that were completed with this epoch."""
    placement: tuple[int, ...] | None = None
    """The processor of each group, if it changed with this epoch."""
    lineage_one_in: int = 1
    lineage_error: float = 0.0
    """Of a sampled lineage: the standard error of a typical group's count, as a share of it."""


def read_epochs(path: Path) -> tuple[Epoch, ...]:
    """All epochs of a journal, oldest first."""
    epochs = []
    for number, entry in enumerate(read_journal(path), start=1):
        try:
            epochs.append(_epoch(entry))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise StateError(f"journal {path} is damaged: line {number} is not an epoch: {what}") from None
    return tuple(epochs)


def _epoch(entry: Mapping[str, Any]) -> Epoch:
    seconds = {str(phase): float(value) for phase, value in entry["seconds"].items()}
    return Epoch(
        sequence=int(entry["sequence"]),
        token=entry.get("token"),
        is_cleanup=entry["kind"] == "cleanup",
        began=float(entry["time"]),
        seconds=seconds["total"],
        phases={phase: seconds[phase] for phase in PHASES},
        input_rows=int(entry["input_rows"]),
        results=int(entry["results"]),
        late_rows=int(entry.get("late_rows", 0)),
        expired_rows=int(entry.get("expired_rows", 0)),
        pending_rows=int(entry["pending_rows"]),
        budget_bytes=entry.get("budget_bytes"),
        state_bytes=entry.get("state_bytes"),
        processors=tuple(_part(part) for part in entry["processors"]),
        spills=tuple(_spill(spill) for spill in entry["spills"]),
        swaps=tuple(_swap(swap) for swap in entry.get("swaps", ())),
        relocations=len(entry.get("relocation", {}).get("switched", ())),
        placement=None if entry.get("placement") is None else tuple(entry["placement"]),
        lineage_one_in=int(entry.get("lineage", {}).get("one_in", 1)),
        lineage_error=float(entry.get("lineage", {}).get("error", 0.0)),
    )


def _part(entry: Mapping[str, Any]) -> ProcessorPart:
    return ProcessorPart(
        processor=int(entry["processor"]),
        resident_bytes=int(entry["resident_bytes"]),
        probed_rows=int(entry["probed_rows"]),
        group_bytes=_by_group(entry.get("group_bytes", {})),
        group_results=_by_group(entry["group_results"]),
        group_rows=_by_group(entry.get("group_rows", {})),
    )


def _by_group(counts: Mapping[str, Any]) -> dict[int, int]:
    return {int(group): int(count) for group, count in counts.items()}


def _spill(entry: Mapping[str, Any]) -> SpillEvent:
    return SpillEvent(
        processor=int(entry["processor"]),
        groups=tuple(int(group) for group in entry["groups"]),
        bytes=int(entry["bytes"]),
        resident_bytes=int(entry["resident_bytes"]),
        reason=str(entry["reason"]),
    )


def _swap(entry: Mapping[str, Any]) -> SwapEvent:
    return SwapEvent(
        processor=int(entry["processor"]),
        suspended=tuple(int(group) for group in entry["suspended"]),
        resumed=tuple(int(group) for group in entry["resumed"]),
        suspended_bytes=int(entry["suspended_bytes"]),
        resumed_bytes=int(entry["resumed_bytes"]),
        reason=str(entry["reason"]),
    )
