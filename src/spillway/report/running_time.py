"""The time axis of a run: seconds since its first epoch began, without the time that no driver was there."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.report.epoch import Epoch


@dataclass(frozen=True, slots=True)
class RunningTime:
    begins: tuple[float, ...]
    """When each epoch began."""
    ends: tuple[float, ...]
    restarts: tuple[float, ...]
    """When a new driver went on."""


def running_time(epochs: Sequence[Epoch]) -> RunningTime:
    begins: list[float] = []
    ends: list[float] = []
    restarts: list[float] = []
    absent = epochs[0].began if epochs else 0.0
    before: Epoch | None = None
    for epoch in epochs:
        begin = epoch.began - absent
        if before is not None and (epoch.token != before.token or begin < ends[-1]):
            if epoch.token != before.token:
                restarts.append(ends[-1])
            absent += begin - ends[-1]  # the driver was away, or the clock was set back
            begin = ends[-1]
        begins.append(begin)
        ends.append(begin + epoch.seconds)
        before = epoch
    return RunningTime(tuple(begins), tuple(ends), tuple(restarts))
