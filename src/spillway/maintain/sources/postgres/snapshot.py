"""A snapshot of PostgreSQL as a value: which transactions it contains, by their ids.

The same rule as `pg_visible_in_snapshot`, for many ids at once. Neither ids nor commits are in the order in
which transactions become visible, so nothing here compares an id with more than the snapshot's own limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All transactions below `low` are in it, none from `high` on, and between them all but `running`."""

    low: int
    high: int
    running: frozenset[int]

    @staticmethod
    def read(text: str) -> Snapshot:
        """From the text of a `pg_snapshot`: `low:high:running,running`."""
        low, high, running = text.split(":")
        return Snapshot(
            int(low),
            int(high),
            frozenset(int(transaction) for transaction in running.split(",") if transaction),
        )

    def sees(self, transactions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some transactions that have committed are in this snapshot."""
        running = np.fromiter(self.running, np.int64, len(self.running))
        return (transactions < self.high) & ~np.isin(transactions, running)

    def contains(self, other: Snapshot) -> bool:
        """Whether all that `other` contains is in this snapshot too."""
        missing = {transaction for transaction in self.running if transaction < other.high} - other.running
        return other.high <= self.high and not missing

    def widened(self, transactions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Full ids of transactions near this snapshot, of which the lower 32 bits are known."""
        behind = (transactions - self.high) & 0xFFFF_FFFF
        return self.high + np.where(behind >= 1 << 31, behind - (1 << 32), behind)
