"""What a Spark session on this machine would have: processors, heap, free memory.

Java's own rules: processors are those that the process may use, in a container as many as its quota; the
heap is what `-Xmx` says, without one of the two survivor spaces of the serial collector.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import ceil
from pathlib import Path

import psutil

from spillway.compute import Resources
from spillway.model import parse_bytes
from spillway.plan.typing import NeedsSparkError

TABLE_PAGE_SETTING = "spark.buffer.pageSize"
_DEFAULT_MASTER = "local[*,4]"
_MASTER = re.compile(r"local\[(\*|\d+)(?:, *\d+)?\]")
_MEMORY = re.compile(r"([1-9]\d*)([mg])b?")
_SHIFTS = {"m": 20, "g": 30}
_ALIGNMENT = 1 << 16
_NEW_RATIO, _SURVIVOR_RATIO = 2, 8
"""Java's defaults: the old generation over the young one, and its largest space over a survivor space."""


def session_resources(settings: Mapping[str, str]) -> Resources:
    """The resources of a session with these settings; they say how much memory the driver has."""
    url = settings.get("spark.master", _DEFAULT_MASTER)
    master, memory = _MASTER.fullmatch(url), _MEMORY.fullmatch(settings["spark.driver.memory"].lower())
    if master is None or memory is None:
        raise NeedsSparkError(f"[spark] sets spark.master = {url}, or an unusual spark.driver.memory")
    cores = available_processors() if master[1] == "*" else int(master[1])
    parallelism = settings.get("spark.default.parallelism")
    return Resources(
        processors=cores if parallelism is None else int(parallelism),
        heap_bytes=heap_bytes(int(memory[1]) << _SHIFTS[memory[2]]),
        free_bytes=psutil.virtual_memory().available,
        table_page_bytes=parse_bytes(settings[TABLE_PAGE_SETTING], TABLE_PAGE_SETTING),
    )


def heap_bytes(most: int) -> int:
    """What Java says of a heap of at most so many bytes, with the serial collector."""
    young = most // (_NEW_RATIO + 1) // _ALIGNMENT * _ALIGNMENT
    survivor = young // (_SURVIVOR_RATIO + 2) // _ALIGNMENT * _ALIGNMENT
    return most - max(survivor, _ALIGNMENT)


def available_processors() -> int:
    """The processors that this process may use."""
    return max(1, min(len(os.sched_getaffinity(0)), ceil(_quota())))


def _quota() -> float:
    """The processors that the control group may use; infinite without a limit."""
    try:
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return float("1e9") if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        pass
    try:
        root = Path("/sys/fs/cgroup/cpu")
        most, period = ((root / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return 1e9 if int(most) <= 0 else int(most) / int(period)
    except (OSError, ValueError):
        return 1e9
