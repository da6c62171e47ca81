"""Measures the memory of a step: images, and all that this process has allocated since the step began.

The C library says what is allocated. So it includes numpy's arrays, Arrow's buffers, batches that Spark
handed over, and larger objects of Python's; the interpreter and its libraries were there before.

The operating system sees more: memory that was freed and is kept for later. Under a budget it is given back
as soon as it is more than a small part of the budget.

Known limit: other C libraries than glibc 2.33 or newer say nothing; then only Arrow's buffers count.
"""

import ctypes
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from spillway.state.memory import MemoryTier, give_back, sibling_bytes
from spillway.state.orders import NO_BOUND

SYSTEM_POOL = "system"
PAGE_BYTES = resource.getpagesize()


class _MallInfo(ctypes.Structure):
    """`struct mallinfo2` of <malloc.h>."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


class Allocated:
    """Says what this process has allocated now and not freed."""

    def __init__(self) -> None:
        self._ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
        if self._ask is not None:
            self._ask.restype = _MallInfo
        self._pool = pa.default_memory_pool()
        self._counts_pool = self._ask is None or self._pool.backend_name != SYSTEM_POOL

    def __call__(self) -> int:
        pool = self._pool.bytes_allocated() if self._counts_pool else 0
        if self._ask is None:
            return int(pool)
        found = self._ask()
        return int(found.uordblks + found.hblkhd + pool)


KEPT_SHARE, LEAST_KEPT_BYTES = 64, 512 << 10
"""Which part of its budget a step keeps of what was freed, before it gives all back, and the least it keeps:
with less, small budgets would take new pages all the time."""
PAGES = Path("/proc/self/statm")
"""Of this process, in pages: all, resident, of files or shared, and more."""


def resident_bytes() -> int:
    """What this process has for itself, as the operating system sees it; 0 where it does not tell."""
    try:
        _, resident, shared, *_ = PAGES.read_bytes().split(maxsplit=3)
    except FileNotFoundError:
        return 0
    return (int(resident) - int(shared)) * PAGE_BYTES


@dataclass(slots=True)
class MemoryMeter:
    """The most memory that a step was seen to use; sampled where it is expected to be most."""

    images: Callable[[], int]
    """The memory of all images of the processor."""
    limit_bytes: int = NO_BOUND
    """What the step may use."""
    peak_bytes: int = 0
    _allocated: Allocated = field(default_factory=Allocated)
    _floor_bytes: int = field(init=False)
    """The least that was allocated so far: what was there before may go during the step."""
    _kept_bytes: int = field(init=False)
    """From when on memory is given back: how much more than is allocated the operating system may see."""

    @classmethod
    def of(cls, tier: MemoryTier, *, shared: bool, limit_bytes: int = NO_BOUND) -> "MemoryMeter":
        """Measures the images of a tier, and those of the tiers beside it if the processor shares it."""
        others = sibling_bytes(tier.directory) if shared else 0
        return cls(lambda: others + tier.resident_bytes(), limit_bytes)

    def __post_init__(self) -> None:
        self._floor_bytes = self._allocated()
        self._kept_bytes = resident_bytes() - self._floor_bytes + self._most_kept

    @property
    def _most_kept(self) -> int:
        return max(self.limit_bytes // KEPT_SHARE, LEAST_KEPT_BYTES)

    def sample(self) -> None:
        allocated, images = self._allocated(), self.images()
        self._floor_bytes = min(self._floor_bytes, allocated)
        self.peak_bytes = max(self.peak_bytes, images + allocated - self._floor_bytes)
        if self.limit_bytes < NO_BOUND and resident_bytes() - allocated > self._kept_bytes:
            give_back()
            self._kept_bytes = resident_bytes() - allocated + self._most_kept
