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
    _results: int = 0
    """What the processor that did most would have done in the time of the goal, by the last epoch."""
    _work: int = 0

    def observe(self, reports: Sequence[Report]) -> None:
        """Take in a clean-up epoch."""
        slowest = max((report.wall_seconds for report in reports), default=0.0)
        if slowest > 0:
            times = self.goal_seconds / slowest
            self._results = int(times * max(report.results for report in reports))
            self._work = int(times * max(report.work for report in reports))

    def limits(self, limits: Limits) -> Limits:
        """The limits of the next clean-up epoch; never less than given."""
        return replace(
            limits,
            results=min(max(limits.results, self._results), limits.results * MOST_TIMES),
            work=min(max(limits.work, self._work), limits.work * MOST_TIMES),
        )
