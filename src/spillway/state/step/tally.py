"""Counts what a step does to the state of each group: rows and bytes that came or expired, and lineage.

Bytes of a group are its rows times the mean size of the rows that it came with.
"""

from collections.abc import Mapping

import numpy as np

from spillway.state.rows import Int64Array, SortedRows, group_offsets
from spillway.state.step.lineage import LineageCounter
from spillway.state.step.task import Task

Float64Array = np.typing.NDArray[np.float64]


class GroupTally:
    def __init__(self, task: Task) -> None:
        self._groups = groups = task.operator.groups
        self._lineage = task.operator.lineage
        self.rows: Int64Array = np.zeros(groups, dtype=np.int64)
        """Rows that became state."""
        self.bytes: Float64Array = np.zeros(groups)
        self.expired_rows: Int64Array = np.zeros(groups, dtype=np.int64)
        self.expired_bytes: Float64Array = np.zeros(groups)
        self._counters = lineage_counters(task)
        self._kept_rows = {of.first: np.zeros(of.groups, dtype=np.int64) for of in self._lineage}
        """Per operator upstream, by its first group: rows that became state here, by the group that they came
        through."""
        self._kept_bytes = {of.first: np.zeros(of.groups) for of in self._lineage}

    def add(self, input_: int, rows: SortedRows) -> None:
        """Count rows of an input that became state."""
        counts = np.diff(group_offsets(rows.hashes, self._groups))
        self.rows += counts
        self.bytes += counts * rows.row_bytes
        for of in self._lineage:
            if of.column.input == input_:
                kept = self._counters[of.first].count(rows.columns.column(of.column.column).to_numpy())
                self._kept_rows[of.first] += kept
                self._kept_bytes[of.first] += kept * rows.row_bytes

    def expire(self, rows: SortedRows, left: SortedRows | None = None) -> None:
        """Count the live rows that are no longer state; `left` are those of them that still are."""
        gone = np.diff(group_offsets(rows.hashes, self._groups))
        if rows.live is not None:
            gone = gone * rows.live
        if left is not None:
            gone = gone - np.diff(group_offsets(left.hashes, self._groups))
        self.expired_rows += gone
        self.expired_bytes += gone * rows.row_bytes

    def lineage(self, results: Mapping[int, Int64Array]) -> dict[int, tuple[int, int, int]]:
        """Per group upstream: view results that came through it, and rows and bytes of it that stay here."""
        found: dict[int, tuple[int, int, int]] = {}
        for first, kept in sorted(self._kept_rows.items()):
            through = results.get(first, np.zeros_like(kept))
            sizes = self._kept_bytes[first]
            for group in np.flatnonzero(through + kept):
                counts = (int(through[group]), int(kept[group]), int(sizes[group]))
                found[first + int(group)] = counts
        return found


def lineage_counters(task: Task) -> dict[int, LineageCounter]:
    """One for each operator upstream, by its first group."""
    one_in, sequence = task.orders.limits.lineage_one_in, task.orders.sequence
    return {of.first: LineageCounter(of.groups, one_in, sequence) for of in task.operator.lineage}


def nonzero(counts: Int64Array | Float64Array) -> dict[int, int]:
    """The counts as whole numbers, of the groups that have any."""
    whole = counts.astype(np.int64)
    return {int(group): int(whole[group]) for group in np.flatnonzero(whole)}
