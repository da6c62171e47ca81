"""Rows that are only written: a clean-up joins them later.

They are late results of a join below, or all input of a run whose results are deferred. They take no memory
for state; few become one run per input.
"""

import numpy as np

from spillway.state.rows import Int64Array, SortedRows, group_offsets, merge
from spillway.state.step.meter import MemoryMeter
from spillway.state.step.run_writer import RunWriter
from spillway.state.step.tally import Float64Array
from spillway.state.step.task import Task
from spillway.state.step.unwritten import Unwritten


class Collection:
    def __init__(self, task: Task, runs: RunWriter, meter: MemoryMeter) -> None:
        self._groups = task.operator.groups
        self._runs = runs
        self._meter = meter
        self._unwritten = Unwritten(len(task.operator.inputs))
        self.rows: Int64Array = np.zeros(self._groups, dtype=np.int64)
        self.bytes: Float64Array = np.zeros(self._groups)

    def add(self, input_: int, rows: SortedRows) -> None:
        self._unwritten.add(input_, rows)
        counts = np.diff(group_offsets(rows.hashes, self._groups))
        self.rows += counts
        self.bytes += counts * rows.row_bytes

    def write(self, most_bytes: int = 0) -> None:
        """Write rows until at most this many bytes are left."""
        for number, parts in self._unwritten.most_first(most_bytes):
            self._runs.collect(number, merge(parts, self._groups, self._meter.sample))
