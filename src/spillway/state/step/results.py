"""Writes the results of one attempt: chunks of combinations become row groups of Parquet files.

A file is opened at the first result and lies under an attempt-specific name in the sink's staging area;
nobody sees it before its epoch is committed. Usually there is one. Parquet keeps what it notes of each row
group in memory until the file ends, so under a small budget another file is begun after some row groups. And
it builds whole pages in memory, so under a small budget these are small.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.errors import SinkError, StateError, file_reason
from spillway.plan.expression import ColumnRef, Columns, Expression, evaluate
from spillway.state.orders import NO_BOUND
from spillway.state.rows import Int64Array, group_of
from spillway.state.step.lineage import LineageCounter
from spillway.state.step.meter import MemoryMeter
from spillway.state.step.operator import Operator, column_labels
from spillway.state.step.tally import lineage_counters
from spillway.state.step.task import Task
from spillway.state.storage import Storage

MOST_PAGE_BYTES, LEAST_PAGE_BYTES = 1 << 20, 8 << 10
MOST_PAGE_ROWS = 1024
PAGES = 16
"""Of a chunk of results. Up to ten times the bytes of a page are in memory while it is built."""
COLUMN_CHUNK_BYTES = 1800
"""What a column of a row group takes in memory when its file is closed, as measured."""
LEAST_ROW_GROUPS = 8
Written = tuple[tuple[str, int, int], ...]
"""Result files: name, rows, bytes."""


class Writer(Protocol):
    """Takes the results of an attempt."""

    rows: int
    group_results: Int64Array
    lineage_results: dict[int, Int64Array]
    """Per join below, results per group that they came through."""

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None: ...

    def close(self) -> Written: ...


class Outlet(Protocol):
    """Makes the writer of results that are input of another operator."""

    def writer(self, operator: Any, stem: str) -> Writer: ...


def result_writer(task: Task, outlet: Outlet | None, meter: MemoryMeter) -> Writer:
    """The writer of a step's results: to another operator through the outlet, or to the view's sink."""
    orders = task.orders
    if outlet is not None:
        return outlet.writer(task.operator, task.file_name("out"))
    return ResultWriter(
        task.operator,
        orders.staging,
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
        """`chunk_bytes` is what one call of `write_rows` writes at most; Parquet's buffers follow from it."""
        self._operator = operator
        self._storage = None if staging is None else Storage(staging)
        self._name = name
        self._compression = compression
        self._page_bytes = max(LEAST_PAGE_BYTES, min(chunk_bytes // PAGES, MOST_PAGE_BYTES))
        groups = chunk_bytes // 2 // (max(1, len(operator.result_schema)) * COLUMN_CHUNK_BYTES)
        self._row_groups = max(LEAST_ROW_GROUPS, groups)
        self._sample = sample
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._begun_rows = 0
        self._begun_groups = 0
        self._written: list[tuple[str, int, int]] = []
        self.rows = 0
        self.group_results: Int64Array = np.zeros(operator.groups, dtype=np.int64)
        self._lineage = operator.lineage
        self.lineage_results: dict[int, Int64Array] = {
            join: np.zeros(operator.groups, dtype=np.int64) for join, _ in self._lineage
        }
        self._counters = counters

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        """Write the outputs for some rows, whose columns `columns` gives; hashes count them by group."""
        self.rows += len(hashes)
        groups = group_of(hashes, self._operator.groups)
        self.group_results += np.bincount(groups, minlength=self._operator.groups)
        for join, ref in self._lineage:
            self.lineage_results[join] += self._counters[join].count(columns(ref).to_numpy())
        if self._storage is not None:
            arrays = output_arrays(self._operator, len(hashes), outputs, columns)
            schema = self._operator.result_schema
            self._write(self._storage, pa.RecordBatch.from_arrays(arrays, schema=schema))

    def _write(self, storage: Storage, batch: pa.RecordBatch) -> None:
        with self._naming(storage):
            self._parquet(storage, batch).write_batch(batch)
        self._sample()
        self._begun_rows += batch.num_rows
        self._begun_groups += 1
        if self._begun_groups >= self._row_groups:
            self._finish()

    def close(self) -> Written:
        """Finish the last file: names, rows and bytes of all, or nothing when there were no results.

        Results that are only counted are reported as a file of no bytes, which no sink looks for.
        """
        if not self.rows:
            return ()
        if self._storage is None:
            return ((self._name, self.rows, 0),)
        self._finish()
        return tuple(self._written)

    def _finish(self) -> None:
        if self._writer is None or self._storage is None:
            return
        with self._naming(self._storage):
            self._writer.close()
            size = self._file.tell()
            self._file.close()
        self._written.append((self._file_name, self._begun_rows, size))
        self._writer, self._begun_rows, self._begun_groups = None, 0, 0

    @contextmanager
    def _naming(self, storage: Storage) -> Iterator[None]:
        """Whatever goes wrong with the file, a full disk above all, names it as one of the sink."""
        try:
            yield
        except (OSError, pa.ArrowException, StateError) as error:
            cause = error.__cause__ or error if isinstance(error, StateError) else error
            reason = file_reason(cause, "correct that, then run the command again")
            where = storage.uri(self._file_name)
            raise SinkError(f"cannot write results of the sink to {where}: {reason}") from error

    @property
    def _file_name(self) -> str:
        return f"{self._name}-{len(self._written)}" if self._written else self._name

    def _parquet(self, storage: Storage, batch: pa.RecordBatch) -> pq.ParquetWriter:
        if self._writer is None:
            self._file = storage.open_output(self._file_name)
            widest = max((column.nbytes for column in batch.columns), default=1) // batch.num_rows
            self._writer = pq.ParquetWriter(
                self._file,
                self._operator.result_schema,
                compression=self._compression,
                use_dictionary=False,
                write_statistics=False,
                data_page_size=self._page_bytes,
                write_batch_size=max(1, min(MOST_PAGE_ROWS, self._page_bytes // max(1, widest))),
            )
        return self._writer


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
