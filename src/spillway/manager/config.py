"""The settings of an engine, as it needs them: sizes in bytes, times in seconds, policies by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from spillway.manager.budget import Budget, Budgets
from spillway.manager.cleanup import CleanupLimits
from spillway.manager.relocation import RelocationLimits, Sampling
from spillway.manager.skew_buffer import SkewLimits
from spillway.manager.spill import HISTORY_WEIGHT
from spillway.policy import EVEN, SHARE, Distribution
from spillway.policy.placement import NO_PLACEMENT, WALL
from spillway.policy.spill import INACTIVE_EPOCHS
from spillway.state.orders import Limits
from spillway.state.rows import CompactionLimits


@dataclass(frozen=True, slots=True)
class Emulation:
    """Service times for experiments with more or slower processors than the machine has."""

    row_seconds: float = 0.0
    """How long a processor of speed 1 is busy with a row that it probes."""
    speeds: tuple[float, ...] = ()
    """The speed of each processor; 1 for those that are not named."""

    def seconds_per_row(self, processor: int) -> float:
        speed = self.speeds[processor] if processor < len(self.speeds) else 1.0
        return self.row_seconds / speed


@dataclass(frozen=True, slots=True)
class EngineConfig:
    processors: int
    groups: int
    tier: str
    """Directory of the memory tier on each host, already specific to this query."""
    limits: Limits = field(default_factory=Limits)
    compaction: CompactionLimits = field(default_factory=CompactionLimits)
    run_compression: str | None = None
    result_compression: str = "snappy"
    budget: Budget | None = None
    own_budgets: tuple[Budget, ...] = ()
    """The budget of each processor, where they differ."""
    spill: str = "least-productive"
    spill_share: float = 0.1
    """How much of a processor's state a spill frees at least."""
    ahead_share: float = 0.0
    """A spill makes room for what the next epoch adds, up to this share of the memory for state.

    The rest waits. It pays together with small spills of a single join. In a tree, and with spills of 30 %,
    it cost a fifth of the results at run time (figures 7.13, 6.6): state is smaller on average.
    """
    inactive_epochs: int = INACTIVE_EPOCHS
    """Epochs without rows after which a group is inactive, for `least-recent`."""
    history_weight: float = HISTORY_WEIGHT
    """What the results of an epoch count for in the next, for `recent-history`."""
    room_share: float = 0.5
    """Clean-up at run time brings groups back until state is this share of what the budget allows it."""
    lasting_epochs: int = 10
    """Beyond that share, groups come back if memory lasts for this many epochs of growth. Ours."""
    cleanup: CleanupLimits = field(default_factory=CleanupLimits)
    deferred: bool = False
    """Input is only written; all results come from the clean-up at its end."""
    rotation: bool = False
    """Groups that leave memory are suspended and take turns, instead of beginning a new generation."""
    rotation_gap_seconds: float | None = None
    rotation_turns: str = SHARE
    rotation_backlog_bytes: int | None = None
    """Input that may wait for suspended groups of a processor; None: a share of its memory for state."""
    rotation_fill_share: float = 0.8
    """How much of the memory for state a turn may fill, waiting input included; the rest is for new input.

    Ours.
    """
    adapt: str = NO_PLACEMENT
    """The policy that moves groups between processors."""
    policy: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """Its parameters, where they are not the defaults."""
    distribution: Distribution = EVEN
    relocation: RelocationLimits = field(default_factory=RelocationLimits)
    sampling: Sampling = field(default_factory=Sampling)
    load_signal: str = WALL
    """What policies of load go by: wall time that is not idle, or processor time."""
    buffer_bytes: int = 0
    """Input that a processor may park because it is slower than the others for a while; 0: none."""
    skew: SkewLimits = field(default_factory=SkewLimits)
    owed_epochs: int = 20
    """How many epochs the sink of a result may lack while others take theirs. Ours."""
    emulation: Emulation = field(default_factory=Emulation)

    def initial_budgets(self) -> Budgets | None:
        """A holder of the budgets that the run begins with; None: memory has no limit."""
        if self.own_budgets:
            return Budgets(self.own_budgets)
        return None if self.budget is None else Budgets((self.budget,))
