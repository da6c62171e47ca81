"""The processor time of this process and all below it: the driver, Spark's JVM and its Python workers.

Two readings around a run give what the run took, on a machine where other programs make times in seconds
useless. A child that ended in between still counts: the parent that waited for it keeps its time. Known
limit: the JVM's compiler and garbage collector are included, so what is measured should be warm.
"""

import psutil


def tree_cpu_seconds() -> float:
    """User and system time so far, of all processes that live and all that were waited for."""
    own = psutil.Process()
    return sum(_cpu_seconds(process) for process in (own, *own.children(recursive=True)))


def _cpu_seconds(process: psutil.Process) -> float:
    """0 for a process that has just ended: its parent has the time, or will have."""
    try:
        return float(sum(process.cpu_times()[:4]))  # user and system, its own and its ended children's
    except psutil.NoSuchProcess:
        return 0.0
