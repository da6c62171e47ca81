"""Input that a step does not take in: it is parked in pending files, for a later epoch.

Rows of suspended groups are parked as they arrive. Other rows are parked when an epoch has done its share.
"""

import numpy as np
import pyarrow as pa

from spillway.model import GroupSet
from spillway.state.rows import Int64Array, Pending, PendingWriter, SortedRows, flags, group_of, take
from spillway.state.step.task import Task

PARKED_PARTS = 4
"""Rows are parked in this many parts, so that few of them are in memory twice."""


class SuspendedInput:
    """Parks the rows that arrive for suspended groups."""

    def __init__(self, suspended: GroupSet, groups: int, writers: list[PendingWriter]) -> None:
        self._groups = groups
        self._is_suspended = flags(suspended, groups)
        self._writers = writers

    def without(
        self, input_: int, hashes: Int64Array, columns: pa.RecordBatch, rows: Int64Array
    ) -> Int64Array:
        """Park those of the rows that are of suspended groups; returns the others."""
        waits = self._is_suspended[group_of(hashes[rows], self._groups)]
        if waits.any():
            for parked in np.array_split(rows[waits], PARKED_PARTS):
                self._writers[input_].write(SortedRows(hashes[parked], take(columns, parked)))
        others: Int64Array = rows[~waits]
        return others

    def close(self) -> list[Pending]:
        return [pending for writer in self._writers for pending in writer.close()]


class ParkedInput:
    def __init__(self, task: Task) -> None:
        self._task = task
        orders, operator = task.orders, task.operator
        self.suspended: SuspendedInput | None = None
        """None if no group is suspended."""
        if orders.suspended:
            self.suspended = SuspendedInput(orders.suspended, operator.groups, self.writers("suspended"))

    def writer(self, label: str, input_: int) -> PendingWriter:
        """A new writer; every label is used once for an input."""
        operator = self._task.operator
        return PendingWriter(
            self._task.storage,
            "pending/" + self._task.file_name(label),
            input_,
            operator.groups,
            self._task.orders.limits.pending_bytes,
            operator.wait_column,
        )

    def writers(self, label: str) -> list[PendingWriter]:
        """One for each input."""
        return [self.writer(label, number) for number in range(len(self._task.operator.inputs))]

    def write(self, label: str, input_: int, rows: SortedRows) -> list[Pending]:
        """Park these rows in files of their own."""
        writer = self.writer(label, input_)
        writer.write(rows)
        return writer.close()

    def close(self) -> list[Pending]:
        """What waits for suspended groups, from earlier epochs and from this one."""
        arrived = [] if self.suspended is None else self.suspended.close()
        return [*self._task.orders.suspended_pending, *arrived]
