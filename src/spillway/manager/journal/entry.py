"""An epoch in the journal: what it did, what was decided before it, and what each processor took for it.

The names of the fields are on disk. A new field needs a default: older journals lack it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spillway.manager.relocation import Load, Refusal
from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model import GroupNumbers
from spillway.policy.placement import ForcedSpill

PHASES = ("order", "execute", "commit", "sink")
"""What an epoch's time is made of, in this order."""


class EpochKind(StrEnum):
    EPOCH = "epoch"
    CLEANUP = "cleanup"


@dataclass(frozen=True, slots=True)
class EpochSeconds:
    order: float
    execute: float
    commit: float
    sink: float
    total: float


@dataclass(frozen=True, slots=True)
class MoveEntry:
    """A move that was begun or completed."""

    number: int
    groups: GroupNumbers
    sender: int
    receiver: int
    bytes: int
    makes_room: bool
    reason: str


@dataclass(frozen=True, slots=True)
class AbandonedEntry:
    number: int
    groups: GroupNumbers
    reason: str


@dataclass(frozen=True, slots=True)
class RelocationEntry:
    begun: tuple[MoveEntry, ...] = ()
    forced_spills: tuple[ForcedSpill, ...] = ()
    refused: tuple[Refusal, ...] = ()
    postponed: tuple[int, ...] = ()
    """Processors that need not spill, because groups are about to leave them."""
    loads: tuple[Load, ...] = ()
    switched: tuple[MoveEntry, ...] = ()
    abandoned: tuple[AbandonedEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class LineageEntry:
    one_in: int = 1
    error: float = 0.0
    """Of a sampled lineage: the standard error of a typical group's count, as a share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorEntry:
    """One processor's part of an epoch."""

    processor: int
    host: str = ""
    executor: str = ""
    budget_bytes: int | None = None
    state_bytes: int | None = None
    input_rows: int = 0
    probed_rows: int
    results: int = 0
    resident_bytes: int
    peak_bytes: int = 0
    freed_bytes: int = 0
    loaded_bytes: int = 0
    read_bytes: int = 0
    """What clean-up read of the state on disk."""
    busy_seconds: float = 0.0
    wall_seconds: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    waiting_rows: int = 0
    """Input that waits for suspended groups, and how much of it may wait."""
    waiting_bytes: int = 0
    waiting_limit_bytes: int | None = None
    group_rows: Mapping[int, int] = field(default_factory=dict)
    group_bytes: Mapping[int, int] = field(default_factory=dict)
    """State that the epoch added, by group."""
    group_results: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEntry:
    sequence: int
    token: int | None = None
    """Of the driver that ran it: it changes with every restart."""
    batch_id: int | None = None
    budget_bytes: int | None = None
    """Of the first processor, as `state_bytes`, its part for state."""
    state_bytes: int | None = None
    input_rows: int
    results: int
    pending_rows: int
    late_rows: int = 0
    null_time_rows: int = 0
    expired_rows: int = 0
    watermark: int | None = None
    runs: int = 0
    spilled_bytes: int = 0
    """Over all epochs: what went to disk only. And how much clean-up has read of it, each reading counted."""
    read_bytes: int = 0
    missing_bytes: int = 0
    """What clean-up has still to read: the state of all groups that miss results."""
    spills: tuple[Spill, ...]
    swaps: tuple[Swap, ...] = ()
    relocation: RelocationEntry = field(default_factory=RelocationEntry)
    placement: tuple[int, ...] | None = None
    """The processor of each group, if it changed with this epoch."""
    load_signal: str = ""
    quotas: Mapping[int, int] = field(default_factory=dict)
    lineage: LineageEntry = field(default_factory=LineageEntry)
    suspended_groups: int = 0
    waiting_rows: int = 0
    processors: tuple[ProcessorEntry, ...]
    kind: EpochKind
    malformed_rows: int = 0
    time: float
    """When it began, in seconds since 1970."""
    seconds: EpochSeconds

    @property
    def is_cleanup(self) -> bool:
        return self.kind is EpochKind.CLEANUP
