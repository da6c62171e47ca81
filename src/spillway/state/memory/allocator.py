"""Makes the C library give freed memory back, so that a budget also holds as the operating system counts.

By default glibc raises by itself the size from which on a block is mapped and unmapped alone, and has one
heap per thread: after a few epochs a process holds several times what it uses. Both are fixed here in
proportion to the budget. It takes effect for numpy, and for Arrow where its pool is the system's
(`ARROW_DEFAULT_MEMORY_POOL=system`, which sessions that Spillway builds set for their workers; Arrow's own
default pool kept 23 MB where 4 MB were in use).

Known limit: other C libraries than glibc are left as they are.
"""

import ctypes

MINIMUM_BYTES = 64 << 10
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of <malloc.h>


def bound_allocator(block_bytes: int) -> None:
    """Let blocks of this size and above go back when they are freed; for the rest of this process's life."""
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is None:
        return
    size = max(MINIMUM_BYTES, min(block_bytes, 1 << 30))
    for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, size), (_TRIM_THRESHOLD, size)):
        change(option, value)


def give_back() -> None:
    """Return what is free now."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
