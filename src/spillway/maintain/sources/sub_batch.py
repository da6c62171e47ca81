"""How many keys a composite query carries: 50 to begin with (figure 10.10), then what was measured as best.

Each size of a ladder is judged by its seconds per key. The neighbours of the best size are tried while they
are unknown, and again from time to time, because a source's speed changes. Only whole sub-batches count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

SUB_BATCH = 50
LADDER = (10, 25, 50, 100, 250, 500, 1000)
_TRIALS = 3
"""Queries of a size before it is judged."""
_AGAIN = 100
"""Queries between two looks at a neighbour."""
_WORTH = 0.95
"""A neighbour must be at least this much cheaper."""
_MEMORY = 0.3
"""The weight of the newest observation."""


Keys = TypeVar("Keys", bound=Sequence[object])


@dataclass(slots=True)
class SubBatch:
    """`fixed`: the size that was asked for; None: found by measurement."""

    fixed: int | None = None
    _seconds: dict[int, float] = field(default_factory=dict)
    _trials: dict[int, int] = field(default_factory=dict)
    _best: int = LADDER.index(SUB_BATCH)
    _queries: int = 0

    @property
    def size(self) -> int:
        """Keys of the next query."""
        return self.fixed or LADDER[self._next()]

    @property
    def best(self) -> int:
        """The cheapest size so far."""
        return self.fixed or LADDER[self._best]

    def timed(self, keys: Keys) -> Iterator[Keys]:
        """The keys of one query after the other; a query takes the time until the next is asked for."""
        start = 0
        while start < len(keys):
            part: Keys = keys[start : start + self.size]  # type: ignore[assignment]
            began = time.perf_counter()
            yield part
            self.record(len(part), time.perf_counter() - began)
            start += len(part)

    def record(self, keys: int, seconds: float) -> None:
        """A query of `keys` keys took `seconds`."""
        if self.fixed is not None or keys not in LADDER:
            return
        self._queries += 1
        place, each = LADDER.index(keys), seconds / keys
        known = self._seconds.get(place)
        self._trials[place] = self._trials.get(place, 0) + 1
        self._seconds[place] = each if known is None else known + _MEMORY * (each - known)
        judged = {tried for tried, trials in self._trials.items() if trials >= _TRIALS}
        for neighbour in self._neighbours():
            if {neighbour, self._best} <= judged and self._seconds[neighbour] < _WORTH * self._seconds[
                self._best
            ]:
                self._best = neighbour
                break

    def _next(self) -> int:
        for place in (self._best, *self._neighbours()):
            if self._trials.get(place, 0) < _TRIALS:
                return place
        if self._queries % _AGAIN == 0:
            return self._neighbours()[self._queries // _AGAIN % len(self._neighbours())]
        return self._best

    def _neighbours(self) -> list[int]:
        return [place for place in (self._best + 1, self._best - 1) if 0 <= place < len(LADDER)]
