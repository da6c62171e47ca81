"""The settings of a run, with their units and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.errors import JobError
from spillway.policy import EVEN, SHARE, TURNS, Distribution, distributed
from spillway.policy.placement import LOAD_SIGNALS, NO_PLACEMENT, WALL, placement_policy
from spillway.policy.spill import INACTIVE_EPOCHS, NO_SPILL, SPILL_POLICIES

UNTIL = ("exhausted", "forever")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The `[run]` table of a job."""

    checkpoint: str
    """Directory (or URI) of state, manifest and journal."""
    processors: int = 2
    groups: int = 256
    """Partition groups: the unit of spill and relocation; many more than processors."""
    memory_bytes: int | None = None
    """State memory of one processor; None: no limit."""
    memory_each: tuple[int, ...] = ()
    """State memory of each processor in bytes, where they differ."""
    until: str = "exhausted"
    """exhausted: all available input, then stop; forever: go on as input arrives."""
    trigger: str | None = None
    """Spark's processing-time trigger for `forever`, such as "2 seconds"; None: as fast as possible."""
    epoch_rows: int = 500_000
    """Input rows of one processor in one epoch; a larger batch is split into several epochs."""
    epoch_results: int = 4_000_000
    """Result rows of one processor in one epoch; one hot key cannot produce more at a time."""
    spill: str | None = None
    """Which groups leave memory first; "none": fail with an error instead.

    None: `least-productive` for a single join, `global-output-penalty` for a tree.
    """
    spill_share: float | None = None
    """How much of a processor's state one spill frees; None: 0.3 for a single join, 0.1 for a tree."""
    inactive_epochs: int = INACTIVE_EPOCHS
    """Epochs without rows after which `least-recent` considers a group inactive."""
    history_weight: float = 0.7
    """How much an epoch's results still weigh in the next epoch, for `recent-history`."""
    state_share: float = 0.75
    """The share of `memory` for state; the rest is working memory of an epoch."""
    room_share: float = 0.5
    """Groups with missing results return to memory until state fills this share of its part."""
    restart_epochs: int = 5
    """Epochs after a start in which nothing moves between processors."""
    rotation: bool = False
    """Suspended groups take turns in memory with their waiting input; for input that never ends."""
    rotation_gap: float | None = None
    """Seconds between two turns; None: the duration of the last exchange."""
    rotation_turns: str = SHARE
    """share: all processors at once, up to `spill_share` of state; group: a single group, as in Flux."""
    rotation_backlog_bytes: int | None = None
    """How much input may wait for the suspended groups of a processor before new input is held back.

    None: half of the memory for state.
    """
    adapt: str = NO_PLACEMENT
    """The policy that moves groups between processors, or makes them spill for each other."""
    policy: Mapping[str, object] = field(default_factory=dict)
    """Its parameters, where they are not the defaults: the table `[run.policy]`."""
    distribution: Distribution = EVEN
    """The first placement of the groups: "even", "hash", or the share of each processor."""
    load_signal: str = WALL
    """What load policies measure: "wall", time that is not idle, or "processor", processor time, for more
    processors than cores."""
    buffer_bytes: int = 0
    """How much input a slow processor may park; 0: none."""
    row_seconds: float = 0.0
    """For experiments: the least time that a processor spends on a row (`[run.emulate]`)."""
    speeds: tuple[float, ...] = ()
    """For experiments: the speed of each processor (`[run.emulate]`)."""
    lineage_one_in: int = 1
    """In a tree: one row in this many is traced to the groups that it passed through; 1: every row."""
    tier: str | None = None
    """Directory of the memory tier; None: a tmpfs with enough room, else the system's temporary directory."""

    def __post_init__(self) -> None:
        for name in ("processors", "groups", "epoch_rows", "epoch_results", "lineage_one_in"):
            if getattr(self, name) < 1:
                raise JobError(f"[run] {name} = {getattr(self, name)}: must be at least 1")
        if self.groups > 65_536:
            raise JobError(f"[run] groups = {self.groups}: at most 65536")
        if self.processors > self.groups:
            raise JobError(
                f"[run] processors = {self.processors} is more than groups = {self.groups}: "
                "a processor without a group has nothing to do; raise groups"
            )
        if self.spill_share is not None and not 0 < self.spill_share <= 1:
            raise JobError(f"[run] spill_share = {self.spill_share}: must be above 0 and at most 1")
        if self.spill not in (None, NO_SPILL, *SPILL_POLICIES):
            known = ", ".join((*SPILL_POLICIES, NO_SPILL))
            raise JobError(f'[run] spill = "{self.spill}": must be one of {known}')
        for name in ("inactive_epochs", "restart_epochs"):
            if getattr(self, name) < 0:
                raise JobError(f"[run] {name} = {getattr(self, name)}: must not be negative")
        for name in ("history_weight", "room_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise JobError(f"[run] {name} = {getattr(self, name)}: must be between 0 and 1")
        if not 0 < self.state_share < 1:
            raise JobError(f"[run] state_share = {self.state_share}: must be above 0 and below 1")
        if self.rotation_gap is not None and self.rotation_gap < 0:
            raise JobError(f"[run] rotation_gap = {self.rotation_gap}: must not be negative")
        if self.load_signal not in LOAD_SIGNALS:
            raise JobError(
                f'[run] load_signal = "{self.load_signal}": must be one of {", ".join(LOAD_SIGNALS)}'
            )
        if self.rotation_turns not in TURNS:
            raise JobError(
                f'[run] rotation_turns = "{self.rotation_turns}": must be one of {", ".join(TURNS)}'
            )
        placement_policy(self.adapt, self.policy)
        distributed(self.distribution, self.groups, self.processors)
        if self.memory_each and len(self.memory_each) != self.processors:
            raise JobError(
                f"[run] memory has {len(self.memory_each)} sizes for {self.processors} processors: "
                "give one for all, or one for each"
            )
        if self.row_seconds < 0 or not all(speed > 0 for speed in self.speeds):
            raise JobError("[run.emulate] row_seconds must not be negative, and every speed must be above 0")
        if self.speeds and len(self.speeds) != self.processors:
            raise JobError(
                f"[run.emulate] speeds has {len(self.speeds)} numbers for {self.processors} processors: "
                "give one for each"
            )
        if self.rotation and self.memory_bytes is None and not self.memory_each:
            raise JobError('[run] rotation = true needs a memory limit; add memory = "64MB"')
        if self.until not in UNTIL:
            raise JobError(f'[run] until = "{self.until}": must be one of {", ".join(UNTIL)}')
