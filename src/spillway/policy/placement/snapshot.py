"""What a placement policy sees: all processors and groups at one moment. Immutable; its clock is a number.

Memory is compared by fill: resident bytes over the memory for state, so that processors with unequal budgets
are balanced in proportion. With equal budgets, or none, that is the same as comparing bytes.
Samples (busy seconds, rows, results) are of the epochs since the statistics were restarted. A relocation
restarts them, because rows of a moved group were counted on two processors.
Load is utilisation, 1 - idle / span: a processor is idle from the end of its own step to the end of the
slowest. So the time of the driver counts for nobody, and what another program takes from a processor counts.
"""

from dataclasses import dataclass, field

from spillway.errors import BUG, StateError
from spillway.policy.placement.need import Progress

NEVER = float("-inf")
WALL, PROCESSOR = "wall", "processor"
LOAD_SIGNALS = (WALL, PROCESSOR)
"""What counts as busy: all that is not idle, or processor time."""


@dataclass(frozen=True, slots=True)
class ProcessorStatistics:
    processor: int
    resident_bytes: int
    state_limit_bytes: int | None = None
    """Memory for state; above it the processor spills by itself. None: no limit."""
    memory_bytes: int | None = None
    """The whole budget: memory for state and working memory."""
    busy_seconds: float = 0.0
    """Of the sampled epochs, what was not idle; or processor time, if that is the signal."""
    span_seconds: float = 0.0
    """Of the sampled epochs, how long the slowest step took."""
    pending_rows: int = 0
    pending_bytes: int = 0
    adapted_seconds: float = NEVER
    """When the last adaptation that involved this processor ended."""
    incoming_bytes: int = 0
    """What moves under way will still add to `resident_bytes`."""
    outgoing_bytes: int = 0
    """What moves under way will take from it."""

    @property
    def capacity(self) -> float:
        """What memory is measured against."""
        return 1.0 if self.state_limit_bytes is None else float(max(1, self.state_limit_bytes))

    @property
    def fill(self) -> float:
        return self.resident_bytes / self.capacity

    @property
    def room_bytes(self) -> float:
        """How much state may still come."""
        if self.state_limit_bytes is None:
            return float("inf")
        return max(0, self.state_limit_bytes - self.resident_bytes - self.incoming_bytes)

    @property
    def overflow_bytes(self) -> int:
        """How much state is beyond the memory for it."""
        return 0 if self.state_limit_bytes is None else max(0, self.resident_bytes - self.state_limit_bytes)

    @property
    def utilisation(self) -> float:
        return self.busy_seconds / self.span_seconds if self.span_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """One group: its current generation, what was sampled of it, and what of it is on disk."""

    group: int
    processor: int
    bytes: int
    rows: int = 0
    results: int = 0
    sampled_rows: int = 0
    """Rows that were processed in the sampled epochs, whether or not they stayed in state."""
    sampled_results: int = 0
    spilled_bytes: int = 0
    """Of generations that were spilled."""
    suspended: bool = False
    """The current generation is on disk too, and the input waits."""
    movable: bool = True
    """Not inside a row, not in clean-up, not moving already."""
    mature: bool = True
    """The generation is old enough for its productivity to mean something."""

    @property
    def productivity(self) -> float:
        """Result rows per byte of state."""
        return self.results / self.bytes if self.bytes else 0.0

    @property
    def resident_bytes(self) -> int:
        return 0 if self.suspended else self.bytes

    @property
    def total_bytes(self) -> int:
        return self.bytes + self.spilled_bytes

    @property
    def on_disk(self) -> bool:
        return self.suspended or self.spilled_bytes > 0


@dataclass(frozen=True, slots=True)
class PlacementSnapshot:
    now_seconds: float
    epoch: int
    processors: tuple[ProcessorStatistics, ...]
    groups: tuple[PlacedGroup, ...]
    collection_seconds: float = 0.0
    """How long this round is to collect statistics before it decides."""
    collected_seconds: float = 0.0
    """How long it has collected, with the time between steps and epochs whose samples were dropped."""
    forced_bytes: int = 0
    """How much state processors were made to spill so far."""
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        known = {processor.processor for processor in self.processors}
        if len(known) != len(self.processors):
            raise StateError(f"snapshot of epoch {self.epoch} has a processor twice; {BUG}")
        if len({processor.state_limit_bytes is None for processor in self.processors}) > 1:
            raise StateError(
                f"snapshot of epoch {self.epoch} has processors with and without a budget; {BUG}"
            )
        lost = sorted({group.processor for group in self.groups} - known)
        if lost:
            raise StateError(f"snapshot of epoch {self.epoch} has groups on unknown processors {lost}; {BUG}")
        if len({group.group for group in self.groups}) != len(self.groups):
            raise StateError(f"snapshot of epoch {self.epoch} has a group in two places")

    def processor(self, number: int) -> ProcessorStatistics:
        return next(processor for processor in self.processors if processor.processor == number)

    def groups_of(self, processor: int) -> tuple[PlacedGroup, ...]:
        return tuple(group for group in self.groups if group.processor == processor)

    def seconds_per_row(self, processor: int) -> float:
        """The measured speed of a processor; without rows, the average is assumed."""
        rows = sum(group.sampled_rows for group in self.groups if group.processor == processor)
        busy = self.processor(processor).busy_seconds
        if rows and busy:
            return busy / rows
        everything = sum(group.sampled_rows for group in self.groups)
        return sum(processor.busy_seconds for processor in self.processors) / max(1, everything)

    @property
    def adapted_seconds(self) -> float:
        """When the last adaptation of any processor ended."""
        return max((processor.adapted_seconds for processor in self.processors), default=NEVER)
