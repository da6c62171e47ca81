"""How a processor's memory budget is divided, and the limits of an epoch that follow from it.

Most of the budget is for state. The rest, the working memory, is for what an epoch does: first a merge (its
output, once as a copy and once as an image), later a round (the batch that arrives, its rows sorted, their
matches, a chunk of results and the buffers that write it) or the parking of rows. These do not overlap in
time, so the working memory has to hold the largest. The shares were found by measuring every allocation.
"""

from dataclasses import dataclass, replace

from spillway.errors import BudgetError
from spillway.model import MINIMUM_BYTES
from spillway.state.orders import Limits
from spillway.state.rows import CompactionLimits

STATE_SHARE = 0.8
"""The default share of a budget that is for state."""
WORKING_BYTES = 3 << 18
"""The least working memory that an epoch can do with."""
SMALL_BYTES, RESERVE_SHARE, MOST_RESERVE_BYTES, LEAST_RESERVE_SHARE = 4 << 20, 0.2, 3 << 19, 1 / 24
"""Left free for memory that nobody counts: Python's objects, half-used pages of the C library, buffers of
the Parquet writer between two samples. It is a fifth of what a budget has above 4 MB, up to 1.5 MB, and a
24th of larger budgets. Under the least budgets the operating system was seen to count up to 1.7 MB more
than the meter; a reserve would take too many results from these."""


@dataclass(frozen=True, slots=True)
class Budget:
    memory_bytes: int
    state_share: float = STATE_SHARE
    """How much of it is for state."""
    backlog_share: float = 0.5
    """How much input may wait for suspended groups, as a share of the memory for state.

    In a join over 120,000 rows whose state was five times the memory, 207 MB of state were read back with it,
    317 MB with half as much, 175 MB with twice as much; what waited was in proportion.
    """

    def __post_init__(self) -> None:
        if not 0 < self.state_share < 1:
            raise BudgetError(f"state_share = {self.state_share}: must be above 0 and below 1")
        if self.memory_bytes < MINIMUM_BYTES:
            raise BudgetError(
                f"memory = {self.memory_bytes} bytes per processor is less than one epoch needs; "
                f"give at least {MINIMUM_BYTES >> 20}MB"
            )
        if self.working_bytes < WORKING_BYTES:
            raise BudgetError(
                f"state_share = {self.state_share} leaves {self.working_bytes} of {self.memory_bytes} bytes "
                f"for an epoch, which needs {WORKING_BYTES}; give more memory, or a smaller share"
            )

    @property
    def state_bytes(self) -> int:
        """State above this is spilled before the next epoch."""
        return int(self.counted_bytes * self.state_share)

    @property
    def counted_bytes(self) -> int:
        """What the meter may count."""
        above = max(0, self.memory_bytes - SMALL_BYTES)
        most = max(MOST_RESERVE_BYTES, int(self.memory_bytes * LEAST_RESERVE_SHARE))
        return self.memory_bytes - min(most, int(above * RESERVE_SHARE))

    @property
    def working_bytes(self) -> int:
        return self.counted_bytes - self.state_bytes

    @property
    def backlog_bytes(self) -> int:
        """Input that may wait for suspended groups, before new input is held back."""
        return int(self.state_bytes * self.backlog_share)

    def limits(self, limits: Limits, inputs: int) -> Limits:
        working = self.working_bytes
        return replace(
            limits,
            memory_bytes=self.counted_bytes,
            state_bytes=self.state_bytes,
            round_bytes=working // 6,
            unwritten_bytes=working // 4,
            range_bytes=min(limits.range_bytes, working // 2),
            chunk_bytes=min(limits.chunk_bytes, working * 3 // 20),
            gather_bytes=min(limits.gather_bytes, working * 3 // 20),
            pending_bytes=min(limits.pending_bytes, max(1 << 14, working // 4 // inputs)),
        )

    def cleanup_bytes(self, image_bytes: int) -> int:
        """How large the groups of a batch are together, beside images of this size."""
        return max(self.working_bytes, self.counted_bytes - image_bytes)

    def compaction(self, limits: CompactionLimits) -> CompactionLimits:
        """A merge has its output in memory twice, beside images that take a round more than their share."""
        return replace(limits, max_bytes=min(limits.max_bytes, self.working_bytes * 3 // 8))


@dataclass(slots=True)
class Budgets:
    """The budget of every processor, also of those that come later: they get that of the last.

    An engine has one and asks it each time, so budgets may change between two epochs.
    """

    each: tuple[Budget, ...]

    def of(self, processor: int) -> Budget:
        return self.each[min(processor, len(self.each) - 1)]


def budget_of(budgets: Budgets | None, processor: int) -> Budget | None:
    """The budget of a processor; None: it has no limit."""
    return None if budgets is None else budgets.of(processor)
