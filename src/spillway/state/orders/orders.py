"""What a processor is told to do in one epoch, and what it reports back.

Orders are a pure value made by the manager; a report is what the commit row of the epoch carries. Together
with the input they determine everything a task does, so an attempt that is run again does the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spillway.model import GroupSet
from spillway.state.rows import Cursor, Pending, Run

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
    work: int = 40_000_000
    """Combinations that are tried, results or not, and rows that a clean-up reads."""
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
    unwritten_bytes: int = 0
    """Bytes of new state that wait for more, to be written as one run of each input."""
    range_bytes: int = 64 << 20
    """Bytes that a clean-up takes at a time to join a range of hashes."""
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
            range_bytes=int(self.range_bytes * share),
        )


@dataclass(frozen=True, slots=True)
class CleanupBatch:
    """The clean-up of some groups as ordered: where to go on, and where their generations end."""

    cursor: Cursor
    ended: tuple[tuple[int, ...], ...]
    """Per group, ascending, the last epochs of its ended generations."""


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
    staging: Mapping[str, str | None]
    """Per result, by its name, where its files go; None: its rows are only counted."""
    run_compression: str | None
    result_compression: str
    free: GroupSet = 0
    """Groups whose memory is given back before anything else: their generation has ended."""
    cleanup: tuple[CleanupBatch, ...] = ()
    """Batches of groups to clean up, in this order."""
    cleanup_runs: tuple[Run, ...] = ()
    """The runs that hold rows of these groups, oldest first."""
    clean: bool = False
    """Whether this is a clean-up epoch, which has no other work."""
    collects: bool = False
    """Whether rows that arrive are only written, to be joined by a clean-up."""
    expired: tuple[str, ...] = ()
    """Names of runs whose rows are all too old for their window."""
    watermark: int | None = None
    """Event time in microseconds; arriving rows that are older are late and do not count."""
    keep: GroupSet = 0
    """Groups whose rows must not expire in this epoch."""
    suspended: GroupSet = 0
    """Groups whose state is on disk and whose input is parked until their turn comes."""
    suspended_pending: tuple[Pending, ...] = ()
    """What is parked for them already."""
    ending: bool = False
    """Whether the input has ended, so that rows no longer wait for the watermark."""
    incoming: tuple[Run, ...] = ()
    """Runs to have in memory at the end, `live` reduced to groups that are about to move here."""
    row_seconds: float = 0.0
    """Emulated service time: how long the processor is busy with a row at least."""
    cleaned: GroupSet = 0
    """All groups that this epoch cleans up, on whatever processor."""
    shared_tier: bool = False
    """Whether other joins have their memory tiers beside this one."""
    advances: bool = True
    """Whether some input is taken in even if there is no room; otherwise all of it might wait forever."""
