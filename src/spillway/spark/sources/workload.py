"""The workload generator as a Spark source: format "workload", streaming and batch, by the Python Data
Source API.

An offset is the number of rows handed out, and a row is a pure function of its number, so a replay from
any offset is exact and the source has no state to commit. Every batch is cut into tasks of at most
`rowsPerTask` rows. Invariant: an offset never passes `rows`, nor, in one batch, `rowsPerTrigger`. Under
`paced` rows become available at the arrival rate, counted from where the query (re)started; the time a
query was down is not caught up.

Known limit: Spark reads Python sources through a Python worker, row batches as Arrow; a trigger also asks
a Python process of the driver for offsets, some milliseconds per stream.
"""

# ruff: noqa: N802, ARG002  (method names and parameters are those of PySpark's API)

import time
from collections.abc import Iterator, MutableMapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spillway.errors import SourceError
from spillway.workload import StreamOptions, parse_options, rows

FORMAT = "workload"
SCHEMA_SQL = "k bigint, id bigint, ts timestamp, p string"

_OFFSET = "rows"
_BATCH_ROWS = 32_768


def register_workload(spark: SparkSession) -> None:
    """Register the format with a session; repeating it is harmless."""
    spark.dataSource.register(WorkloadSource)


class WorkloadSource(DataSource):
    """One stream of a workload; see `spillway.workload.options` for the options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA_SQL

    def reader(self, schema: StructType) -> "WorkloadReader":
        return WorkloadReader(self._parsed)

    def streamReader(self, schema: StructType) -> "WorkloadStreamReader":
        return WorkloadStreamReader(self._parsed)


class RowSlice(InputPartition):
    """Rows [lo, hi) of the stream: the input of one task."""

    def __init__(self, lo: int, hi: int) -> None:
        super().__init__((lo, hi))
        self.lo = lo
        self.hi = hi


class WorkloadReader(DataSourceReader):
    """All `rows` rows at once."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return _cut(0, _end(self._options), self._options.rows_per_task)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self._options, partition)


class WorkloadStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream, batch by batch."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._end = options.rows
        self._paced = options.paced
        self._origin: tuple[float, int] | None = None  # when pacing began, and at which row

    def initialOffset(self) -> dict[str, int]:
        return {_OFFSET: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.rows_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = _end(self._options)
        self._paced = False

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:
        first = int(start[_OFFSET])
        bounds = [] if self._end is None else [self._end]
        if self._paced:
            bounds.append(self._arrived(first))
        if isinstance(limit, ReadMaxRows):
            bounds.append(first + limit.max_rows)
        elif not bounds and self._options.rows_per_trigger is not None:
            # A trigger that asks for all of an endless stream gets one batch.
            bounds.append(first + self._options.rows_per_trigger)
        return {_OFFSET: max(first, min(bounds))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _cut(int(start[_OFFSET]), int(end[_OFFSET]), self._options.rows_per_task)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self._options, partition)

    def _arrived(self, first: int) -> int:
        now = time.monotonic()
        if self._origin is None:
            self._origin = (now, first)
        began, row = self._origin
        return row + int((now - began) * self._options.workload.rate_rows_per_second)


def _end(options: StreamOptions) -> int:
    if options.rows is None:
        raise SourceError(
            f"workload: stream {options.stream!r} has no end; give option rows to read all of it"
        )
    return options.rows


def _cut(lo: int, hi: int, rows_per_task: int) -> list[InputPartition]:
    """Slices of nearly equal length, none above the limit."""
    tasks = -(-(hi - lo) // rows_per_task)
    bounds = [lo + (hi - lo) * number // tasks for number in range(tasks + 1)] if tasks else []
    return [RowSlice(a, b) for a, b in pairwise(bounds)]


def _batches(options: StreamOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, RowSlice)
    for lo in range(partition.lo, partition.hi, _BATCH_ROWS):
        yield rows(options.workload, options.stream, lo, min(lo + _BATCH_ROWS, partition.hi))
