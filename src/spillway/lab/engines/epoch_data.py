"""The input of `bench epoch`: files of chosen sizes whose results do not grow with the state.

The keys of a file occur in the same file of the other streams and in no earlier one, with as many rows each
as in `bench join` or `bench tree`. So every epoch of equal rows has about equal results while the state that
is searched grows; in those benchmarks results grow with the state.
Invariant: file i of every stream has `sizes[i]` rows.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spillway.lab.engines.data import ROWS_PER_KEY, SHAPES, WIDTH_BYTES, chain_rows
from spillway.workload import UniformJoin

KEYS = {"join": ("k",), "tree": ("l", "r")}
"""The columns that hold keys, by shape."""


def write_fresh_keys(directory: Path, sizes: Sequence[int], shape: str = "join") -> None:
    """Write the streams of `join` or `tree`, one file per size; modification times rise, as their order."""
    first_modified = int(time.time()) - len(sizes)
    first_key = 0
    for number, size in enumerate(sizes):
        for stream in SHAPES[shape].streams:
            path = directory / stream / f"part-{number:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = _rows(shape, stream, size, number)
            for key in KEYS[shape]:
                values = pc.add(rows.column(key), first_key)
                rows = rows.set_column(rows.schema.get_field_index(key), key, values)
            pq.write_table(pa.Table.from_batches([rows]), path, compression="snappy")
            os.utime(path, (first_modified + number, first_modified + number))
        first_key += size


def _rows(shape: str, stream: str, size: int, seed: int) -> pa.RecordBatch:
    if shape == "tree":
        return chain_rows(stream, size, seed, 0, size)
    spec = UniformJoin(max(1, size // ROWS_PER_KEY), SHAPES[shape].streams, WIDTH_BYTES, seed=seed)
    return spec.rows(stream, 0, size)
