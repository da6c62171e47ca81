"""Collects the final rows of a round: beyond its room, whole groups are parked, never a part of one.

So a group's rows are processed together and in order. Known limit: the final rows of one group are in memory
at once, however many they are.
"""

import numpy as np

from spillway.state.rows import Int64Array, PendingWriter, SortedRows, concat, group_of


class FinalRows:
    def __init__(self, groups: int, rows: int, size: int, others: PendingWriter) -> None:
        self._groups = groups
        self._most_rows = rows
        self._most_bytes = size
        self._others = others
        self._parts: list[SortedRows] = []
        self._rows = 0
        self._bytes = 0
        self._parked = np.zeros(groups, dtype=np.bool_)
        """Groups that wait for a later round."""

    def add(self, rows: SortedRows) -> None:
        if self._parked.any():
            rows = self._without_parked(rows)
        if not rows.rows:
            return
        self._parts.append(rows)
        self._rows += rows.rows
        self._bytes += rows.nbytes
        if self._rows > self._most_rows or self._bytes > self._most_bytes:
            self._park()

    def gathered(self) -> SortedRows | None:
        """All rows that were collected, not sorted."""
        if not self._parts:
            return None
        if len(self._parts) > 1:
            hashes = np.concatenate([part.hashes for part in self._parts])
            self._parts = [SortedRows(hashes, concat([part.columns for part in self._parts]))]
        return self._parts[0]

    def _park(self) -> None:
        """Give up groups until the others fit; the first group stays whatever its size."""
        counts = np.sum([self._counts(part) for part in self._parts], axis=0)
        taken = np.cumsum(counts)
        per_row = self._bytes / self._rows
        fits = (taken <= self._most_rows) & (taken * per_row <= self._most_bytes)
        fits |= taken == counts  # nothing before it
        leaving = ~fits & (counts > 0)
        self._parked |= ~fits
        if not leaving.any():
            return
        parts = [self._without_parked(part) for part in self._parts]
        self._parts = [part for part in parts if part.rows]
        self._rows = sum(part.rows for part in self._parts)
        self._bytes = sum(part.nbytes for part in self._parts)

    def _counts(self, rows: SortedRows) -> Int64Array:
        return np.bincount(group_of(rows.hashes, self._groups), minlength=self._groups)

    def _without_parked(self, rows: SortedRows) -> SortedRows:
        """Park the rows of groups that wait; returns the others."""
        waits = self._parked[group_of(rows.hashes, self._groups)]
        if not waits.any():
            return rows
        self._others.write(rows.take(np.flatnonzero(waits)))
        return rows.take(np.flatnonzero(~waits))
