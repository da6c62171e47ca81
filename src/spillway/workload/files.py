"""Streams as Parquet directories that Spark's file source reads in order.

One directory per stream; files of equal row count whose modification times rise by a second each, because the
file source orders by modification time and `maxFilesPerTrigger=1` then makes file i epoch i. A directory gets
its name only when it is complete; an existing directory is refused, never extended.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.errors import SourceError
from spillway.workload.row_slices import rows as workload_rows
from spillway.workload.uniform import UniformJoin
from spillway.workload.workload import Workload

Slice = Callable[[int, int], pa.RecordBatch]


def write_streams(directory: Path, spec: Workload | UniformJoin, *, rows: int, files: int) -> None:
    """Write `rows` rows of each stream of `spec` to directory/<stream>, in `files` files."""
    for stream in spec.streams:
        write_stream(directory / stream, _slices(spec, stream), rows=rows, files=files)


def write_stream(directory: Path, make: Slice, *, rows: int, files: int) -> None:
    """Write rows [0, rows) of one stream, slice by slice."""
    if files < 1 or rows < 0 or rows % files:
        raise SourceError(
            f"{directory}: {rows} rows in {files} files: choose a number of files that divides the rows"
        )
    if directory.exists():
        raise SourceError(f"{directory}: exists already; remove it or choose another directory")
    unfinished = directory.with_name(f".{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    per_file = rows // files
    first_modified = int(time.time()) - files
    for number in range(files):
        path = unfinished / f"part-{number:05d}.parquet"
        batch = make(number * per_file, (number + 1) * per_file)
        pq.write_table(pa.Table.from_batches([batch]), path, compression="snappy")
        os.utime(path, (first_modified + number, first_modified + number))
    unfinished.rename(directory)


def _slices(spec: Workload | UniformJoin, stream: str) -> Slice:
    if isinstance(spec, UniformJoin):
        return lambda lo, hi: spec.rows(stream, lo, hi)
    return lambda lo, hi: workload_rows(spec, stream, lo, hi)
