"""The tables of a plan while it runs: each is dropped after its last use, to hold no more than is needed.

The round's own deltas stay, because every query may be compensated by them, and results stay to the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from spillway.maintain.plan import MaintenancePlan, MaintenanceQuery, Step, Take


class Slots(dict[int, pa.Table]):
    """Tables by the number of their slot."""

    def __init__(self, plan: MaintenancePlan, deltas: Sequence[pa.Table]) -> None:
        super().__init__(enumerate(deltas))
        self._own = len(deltas)
        self._uses = Counter(plan.results)
        for step in plan.steps:
            self._uses.update(_reads(step))

    def spend(self, step: Step) -> None:
        """The step is done: drop what it was the last to read."""
        for slot in _reads(step):
            self._uses[slot] -= 1
            if not self._uses[slot] and slot >= self._own:
                del self[slot]


def _reads(step: Step) -> Sequence[int]:
    if isinstance(step, MaintenanceQuery):
        return [part.read for part in step.parts]
    return [step.read] if isinstance(step, Take) else step.reads
