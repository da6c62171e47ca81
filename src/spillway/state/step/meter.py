"""Measures the memory of a step: images, and all that this process has allocated since the step began.

The C library says what is allocated. So it includes numpy's arrays, Arrow's buffers, batches that Spark
handed over, and larger objects of Python's; the interpreter and its libraries were there before.

Known limit: other C libraries than glibc 2.33 or newer say nothing; then only Arrow's buffers count.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from spillway.state.memory import MemoryTier, sibling_bytes

SYSTEM_POOL = "system"


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


@dataclass(slots=True)
class MemoryMeter:
    """The most memory that a step was seen to use; sampled where it is expected to be most."""

    images: Callable[[], int]
    """The memory of all images of the processor."""
    peak_bytes: int = 0
    _allocated: Allocated = field(default_factory=Allocated)
    _floor_bytes: int = field(init=False)
    """The least that was allocated so far: what was there before may go during the step."""

    @classmethod
    def of(cls, tier: MemoryTier, *, shared: bool) -> "MemoryMeter":
        """Measures the images of a tier, and those of the tiers beside it if the processor shares it."""
        others = sibling_bytes(tier.directory) if shared else 0
        return cls(lambda: others + tier.resident_bytes())

    def __post_init__(self) -> None:
        self._floor_bytes = self._allocated()

    def sample(self) -> None:
        allocated = self._allocated()
        self._floor_bytes = min(self._floor_bytes, allocated)
        self.peak_bytes = max(self.peak_bytes, self.images() + allocated - self._floor_bytes)
