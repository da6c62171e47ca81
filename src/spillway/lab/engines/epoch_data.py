"""The input of `bench epoch`: files of chosen sizes whose results do not grow with the state.

The keys of a file occur in the same file of the other streams and in no earlier one, two rows each on
average, so every epoch of equal rows has about equal results while the state that is searched grows.
Invariant: file i of every stream has `sizes[i]` rows.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spillway.lab.engines.data import JOIN, ROWS_PER_KEY, WIDTH_BYTES
from spillway.workload import UniformJoin


def write_fresh_keys(directory: Path, sizes: Sequence[int]) -> None:
    """Write the streams of `bench join`, one file per size; modification times rise, as their order."""
    first_modified = int(time.time()) - len(sizes)
    first_key = 0
    for number, size in enumerate(sizes):
        keys = max(1, size // ROWS_PER_KEY)
        spec = UniformJoin(keys, JOIN.streams, WIDTH_BYTES, seed=number)
        for stream in JOIN.streams:
            path = directory / stream / f"part-{number:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = spec.rows(stream, 0, size)
            table = pa.Table.from_batches([rows]).set_column(0, "k", pc.add(rows.column("k"), first_key))
            pq.write_table(table, path, compression="snappy")
            os.utime(path, (first_modified + number, first_modified + number))
        first_key += keys
