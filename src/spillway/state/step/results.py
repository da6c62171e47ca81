"""What becomes of the results of one attempt: chunks of combinations go to a writer, which counts them.

`ResultWriter` is that of an operator whose results are those of the view as they are; an outlet makes the
writers of all others.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from spillway.plan.expression import ColumnRef, Columns, Expression, evaluate
from spillway.state.orders import NO_BOUND, Files
from spillway.state.rows import Int64Array, group_of
from spillway.state.step.lineage import LineageCounter
from spillway.state.step.meter import MemoryMeter
from spillway.state.step.operator import Operator, column_labels
from spillway.state.step.result_files import ResultFiles
from spillway.state.step.tally import lineage_counters
from spillway.state.step.task import Task

ONLY_RESULT = ""
"""The name of the result of a query with one view."""
Written = Mapping[str, Files]
"""Result files, by the name of the result."""


class Writer(Protocol):
    """Takes the results of an attempt."""

    rows: int
    group_results: Int64Array
    lineage_results: dict[int, Int64Array]
    """Per operator upstream, by its first group: results per group that they came through."""

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None: ...

    def close(self) -> Written: ...


class Outlet(Protocol):
    """Makes the writer of results that are input of other operators, or results by name."""

    def writer(self, task: Task, sample: Callable[[], None]) -> Writer: ...


def result_writer(task: Task, outlet: Outlet | None, meter: MemoryMeter) -> Writer:
    """The writer of a step's results: to where the outlet leads, or to the view's sink."""
    orders = task.orders
    if outlet is not None:
        return outlet.writer(task, meter.sample)
    return ResultWriter(
        task.operator,
        orders.staging.get(ONLY_RESULT),
        task.file_name("parquet"),
        orders.result_compression,
        lineage_counters(task),
        orders.limits.chunk_bytes,
        meter.sample,
    )


class ResultWriter:
    def __init__(
        self,
        operator: Operator,
        staging: str | None,
        name: str,
        compression: str,
        counters: Mapping[int, LineageCounter],
        chunk_bytes: int = NO_BOUND,
        sample: Callable[[], None] = lambda: None,
    ) -> None:
        """`chunk_bytes` is what one call of `write_rows` writes at most."""
        self._operator = operator
        self._files = ResultFiles(operator.result_schema, staging, name, compression, chunk_bytes, sample)
        self.rows = 0
        self.group_results: Int64Array = np.zeros(operator.groups, dtype=np.int64)
        self._lineage = operator.lineage
        self.lineage_results: dict[int, Int64Array] = {
            of.first: np.zeros(of.groups, dtype=np.int64) for of in self._lineage
        }
        self._counters = counters

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        """Write the outputs for some rows, whose columns `columns` gives; hashes count them by group."""
        self.rows += len(hashes)
        groups = group_of(hashes, self._operator.groups)
        self.group_results += np.bincount(groups, minlength=self._operator.groups)
        for of in self._lineage:
            self.lineage_results[of.first] += self._counters[of.first].count(columns(of.column).to_numpy())
        needed = not self._files.only_counts
        arrays = output_arrays(self._operator, len(hashes), outputs, columns) if needed else ()
        self._files.write(len(hashes), arrays)

    def close(self) -> Written:
        files = self._files.close()
        return {ONLY_RESULT: files} if files else {}


def output_arrays(
    operator: Operator, rows: int, outputs: Sequence[Expression], columns: Columns
) -> list[pa.Array]:
    """The values of the outputs for some rows, in the types of the operator's results."""
    arrays = []
    labels = column_labels(operator)
    for value, field in zip(outputs, operator.result_schema, strict=True):
        array = columns(value) if isinstance(value, ColumnRef) else evaluate(value, columns, rows, labels)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return arrays
