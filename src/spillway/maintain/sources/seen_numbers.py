"""Which numbers of a change table were seen, where a smaller number may commit later.

Everything up to `high` was seen but the ranges `missing`; these stay not seen until they appear. A number
that was rolled back stays missing for ever, which costs a little space and is harmless otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SeenNumbers:
    """Numbers begin at 1; `missing` are closed ranges in order."""

    high: int = 0
    missing: tuple[tuple[int, int], ...] = ()

    def with_numbers(self, numbers: NDArray[np.int64]) -> SeenNumbers:
        """Also `numbers`, none of which was seen before."""
        if not len(numbers):
            return self
        ordered = np.sort(numbers)
        high = max(self.high, int(ordered[-1]))
        unseen = [*self.missing, *([(self.high + 1, high)] if high > self.high else [])]
        missing: list[tuple[int, int]] = []
        for first, last in unseen:
            found = ordered[np.searchsorted(ordered, first) : np.searchsorted(ordered, last, side="right")]
            fence = np.concatenate([[first - 1], found, [last + 1]])
            gaps = np.flatnonzero(np.diff(fence) > 1)
            missing += [(int(fence[gap]) + 1, int(fence[gap + 1]) - 1) for gap in gaps]
        return SeenNumbers(high, tuple(missing))

    def unseen_sql(self, column: str) -> str:
        """A condition on `column` that holds for numbers that were not seen."""
        ranges = [f"{column} BETWEEN {first} AND {last}" for first, last in self.missing]
        return "(" + " OR ".join([f"{column} > {self.high}", *ranges]) + ")"
