"""How much a clean-up epoch does: as much as takes about a given time, by what the last one took.

An epoch must end, so that its results come out and a kill repeats little; but each one costs a Spark job.
What counts is results, after all predicates, and the work for them. The first epoch has the limits of any
other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillway.state.orders import Limits, Report

MOST_TIMES = 1000
"""An epoch does this many times as much as one with input, at most."""


@dataclass(slots=True)
class CleanupPace:
    goal_seconds: float
    _speed: float = 0.0
    """Times the last epoch's share that fit into the goal."""
    _done: tuple[int, int] = (0, 0)
    """Results and work of the last epoch, of the processor that did most."""

    def observe(self, reports: Sequence[Report]) -> None:
        """Take in a clean-up epoch."""
        slowest = max((report.wall_seconds for report in reports), default=0.0)
        if slowest > 0:
            self._speed = self.goal_seconds / slowest
            self._done = (
                max(report.results for report in reports),
                max(report.work for report in reports),
            )

    def limits(self, limits: Limits) -> Limits:
        """The limits of the next clean-up epoch; never less than given."""
        results, work = (int(done * self._speed) for done in self._done)
        return replace(
            limits,
            results=min(max(limits.results, results), limits.results * MOST_TIMES),
            work=min(max(limits.work, work), limits.work * MOST_TIMES),
        )
