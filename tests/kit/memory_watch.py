"""Memory as the operating system sees it, sampled from outside while processes run under a budget.

What counts is the growth of anonymous memory of the processes since the watch began, and the blocks of the
memory tier's files. So the C library's free lists, the Parquet writer, numpy and the interpreter's own tables
count; the interpreter and its libraries, which were there before, do not. Needs Linux (`is_possible`).

A process that appears later counts from what it had when it was first seen. Known limit: what lives shorter
than the interval is missed.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from spillway.state.memory.tier_directory import TMPFS

INTERVAL_SECONDS = 0.01


class MemorySample(NamedTuple):
    at: float
    """In seconds since 1970, as in journals."""
    anonymous_bytes: int
    image_bytes: int

    @property
    def bytes(self) -> int:
        return self.anonymous_bytes + self.image_bytes


class MemoryWatch:
    """A context manager; `samples` stays readable afterwards."""

    def __init__(
        self,
        processes: Callable[[], Iterable[int]],
        tier: Path,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._processes, self._tier, self._interval_seconds = processes, tier, interval_seconds
        self._before: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory-watch", daemon=True)
        self.samples: list[MemorySample] = []

    def __enter__(self) -> "MemoryWatch":
        self._anonymous_bytes()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak(self) -> MemorySample:
        return max(self.samples, key=lambda sample: sample.bytes)

    def _watch(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            self.samples.append(MemorySample(time.time(), self._anonymous_bytes(), image_bytes(self._tier)))

    def _anonymous_bytes(self) -> int:
        total = 0
        for process in self._processes():
            found = anonymous_bytes(process)
            if found is not None:
                total += found - self._before.setdefault(process, found)
        return total


def is_possible() -> bool:
    return TMPFS.is_dir() and Path("/proc/self/smaps_rollup").exists()


def anonymous_bytes(process: int) -> int | None:
    """None for a process that has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:")]
    return found[0] if found else None


def image_bytes(directory: Path) -> int:
    """The blocks of all files below; freed pages of a file do not count."""
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH116, PTH118
            except FileNotFoundError:
                continue  # removed meanwhile
    return total
