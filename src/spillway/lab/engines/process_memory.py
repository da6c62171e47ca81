"""The memory of a process and all its descendants, sampled while it runs.

Two numbers. RSS, summed, counts a page once per process that maps it. PSS (Linux, /proc/<pid>/smaps_rollup)
divides shared pages by the number of their users, so its sum counts each page once: ratios use it. It also
covers memory-backed files that no process maps at the moment: the growth of /dev/shm since the start replaces
the mapped shared memory if it is larger, so an engine cannot hide state there. A process counts from its
second sample on: a JVM that starts a command shares its whole memory with the child for a moment, and both
numbers would count it twice.

Reading PSS walks page tables, milliseconds per GiB, under a lock of the observed process. So it is read
only when it could be a new peak (PSS never exceeds RSS) and for at most 1/20 of the time. Known limit: a
peak between two samples is missed, and other programs that fill /dev/shm meanwhile are counted in.
"""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil

SAMPLE_SECONDS = 0.1
_PSS_TIME_SHARE = 0.05
_SHARED_MEMORY = "/dev/shm"  # noqa: S108  (observed, never written)


@dataclass(frozen=True, slots=True)
class Pss:
    """Proportional set size of a process; `shared` is the part in memory-backed files."""

    private_bytes: int
    shared_bytes: int


class ProcessMemory:
    """Samples a process tree from a thread, as a context manager; the peaks stay readable afterwards."""

    def __init__(self, pid: int, interval_seconds: float = SAMPLE_SECONDS) -> None:
        self.peak_rss_bytes = 0
        self.peak_pss_bytes: int | None = None
        self.seen: dict[
            int, psutil.Process
        ] = {}  # every process of the tree, also those that lost their parent
        self._root = psutil.Process(pid)
        self._interval_seconds = interval_seconds
        self._shared_at_start_bytes = _shared_used_bytes()
        self._known: frozenset[int] = frozenset({pid})  # alive at the previous sample
        self._next_pss_at = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="process-memory", daemon=True)

    def __enter__(self) -> "ProcessMemory":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._interval_seconds):
            self.sample()

    def sample(self) -> None:
        """Take one sample now."""
        try:
            tree = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            tree = []
        self.seen.update({process.pid: process for process in tree})
        running = [process for process in self.seen.values() if process.is_running()]
        alive = [process for process in running if process.pid in self._known]
        self._known = frozenset(process.pid for process in running)
        rss_bytes = sum(_rss_bytes(process) for process in alive)
        self.peak_rss_bytes = max(self.peak_rss_bytes, rss_bytes)
        shared_bytes = max(0, _shared_used_bytes() - self._shared_at_start_bytes)
        began = time.monotonic()
        if began < self._next_pss_at or rss_bytes + shared_bytes <= (self.peak_pss_bytes or 0):
            return
        parts = [part for process in alive if (part := read_pss(process.pid)) is not None]
        if parts:
            mapped_bytes = sum(part.shared_bytes for part in parts)
            total = sum(part.private_bytes for part in parts) + max(mapped_bytes, shared_bytes)
            self.peak_pss_bytes = max(self.peak_pss_bytes or 0, total)
        ended = time.monotonic()
        self._next_pss_at = ended + (ended - began) / _PSS_TIME_SHARE


def read_pss(pid: int) -> Pss | None:
    """PSS of one process; None if the system has none, or the process is gone or not ours."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {name: int(size.split()[0]) * 1024 for name, _, size in (line.partition(":") for line in lines)}
    if "Pss" not in sizes:
        return None
    shared_bytes = sizes.get("Pss_Shmem", 0)
    return Pss(sizes["Pss"] - shared_bytes, shared_bytes)


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _shared_used_bytes() -> int:
    try:
        space = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return 0
    return (space.f_blocks - space.f_bfree) * space.f_frsize
