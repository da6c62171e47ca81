"""The processor time of this process and all below it: the driver, Spark's JVM and its Python workers.

`ProcessorTime` is started before a run and says afterwards what the run took, on a machine where other
programs make times in seconds useless. A child that ends in between still counts if its parent waits for it.
Known limits: the last moments of a child that nobody waits for are missed; the JVM's compiler and garbage
collector are included, so what is measured should be warm.
"""

from collections.abc import Mapping

import psutil

Readings = Mapping[int, tuple[float, float]]
"""Per process, its own processor seconds, and those of its children that have ended."""


class ProcessorTime:
    def __init__(self) -> None:
        self._before = _read()

    def seconds(self) -> float:
        """User and system time since the start."""
        return spent(self._before, _read())


def spent(before: Readings, after: Readings) -> float:
    """What was used between two readings.

    Time of a process that was there before and has ended is in its parent's second number, all its life
    long; or nowhere, and then its time before must not be taken from that of others.
    """
    own = sum(now - before.get(process, (0.0, 0.0))[0] for process, (now, _) in after.items())
    ended = sum(now - before.get(process, (0.0, 0.0))[1] for process, (_, now) in after.items())
    known = sum(sum(times) for process, times in before.items() if process not in after)
    return own + max(0.0, ended - known)


def _read() -> dict[int, tuple[float, float]]:
    root = psutil.Process()
    found = {}
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # it has just ended
            continue
        found[process.pid] = times.user + times.system, times.children_user + times.children_system
    return found
