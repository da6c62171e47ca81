"""The rows of a batch of files: tasks read most of them, Spark reads what only Spark can read.

Up to `FEW_ROWS` rows the driver reads the files itself and sends the rows with its orders: one stage less.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame

from spillway.scan import ScanInput, Split, deal, read
from spillway.spark.jvm import FrameJobs, Frames
from spillway.spark.stream.batch_rows import FrameBatch
from spillway.spark.worker import NativeRows, RowReader

FEW_ROWS = 40_000
"""To ship them from the driver took 126 ms, by tasks 172; of 120,000 rows 236 and 246."""
FEW_BYTES = 8 << 20
FEW_BATCH = 8192
"""Rows that the driver decodes at a time: it must notice rows that are larger than their file says."""


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    inputs: tuple[ScanInput | None, ...]
    """By tag; None: Spark reads it."""
    splits: Sequence[Split]
    tasks: int
    """How many run at a time."""
    frame: Callable[[], DataFrame] | None = None
    """The rows that Spark reads."""

    def few(self) -> Iterator[pa.RecordBatch] | None:
        rows, size = sum(split.rows for split in self.splits), sum(split.bytes for split in self.splits)
        if self.frame is not None or rows > FEW_ROWS or size > FEW_BYTES:
            return None
        return chain.from_iterable(read(self._input(split), split, FEW_BATCH) for split in self.splits)

    def sources(self, jobs: FrameJobs) -> list[tuple[Frames, RowReader]]:
        found = [] if self.frame is None else FrameBatch(self.frame()).sources(jobs)
        shares = [share for share in deal(self.splits, self.tasks) if share]
        if shares:
            frames = jobs.placed([[pickle.dumps(share)] for share in shares], [None] * len(shares))
            found.append((frames, NativeRows(self.inputs)))
        return found

    def _input(self, split: Split) -> ScanInput:
        scan = self.inputs[split.tag]
        assert scan is not None
        return scan
