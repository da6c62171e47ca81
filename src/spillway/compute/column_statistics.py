"""Statistics of relations in Parquet files, without Spark: what `sketch` needs, in one pass with numpy.

For relations that tasks join by columns (see `columnar`): integer keys, plain files. Row sizes are counted as
Spark counts them, so that hash tables of Spark can be estimated from them too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spillway.compute.columnar import StoredRelation, read_file
from spillway.compute.sketch import BUCKETS, SLOT_BYTES, KeySketch, RelationStatistics

_SIGN_BIT, _PLACE_BIT, _PLACES = 40, 20, 64


def column_statistics(
    relations: Sequence[StoredRelation], keys: Sequence[Collection[str]]
) -> list[RelationStatistics]:
    """One entry per relation; `keys` are the names of its key columns in the view."""
    return [_statistics(one, wanted) for one, wanted in zip(relations, keys, strict=True)]


def _statistics(one: StoredRelation, keys: Collection[str]) -> RelationStatistics:
    names = list(dict.fromkeys(column for _, column in one.columns))
    tables = [read_file(file, names) for file in one.files]
    table = pa.concat_tables(tables)
    text = sum(
        pc.sum(pc.binary_length(table[column])).as_py() or 0
        for _, column in one.columns
        if pa.types.is_string(table.schema.field(column).type)
    )
    rows = table.num_rows
    row_bytes = SLOT_BYTES * (len(one.columns) + 1) + (text / rows if rows else 0.0)
    sketches = {name: key_sketch(table[column]) for name, column in one.columns if name in keys}
    return RelationStatistics(rows, row_bytes, sketches, sum(one.num_rows > 0 for one in tables))


def key_sketch(column: pa.ChunkedArray) -> KeySketch:
    values = column.drop_null().to_numpy().astype(np.int64)
    hashed = _mixed(values.view(np.uint64))
    bucket = (hashed % np.uint64(BUCKETS)).astype(np.int64)
    sign = ((hashed >> np.uint64(_SIGN_BIT)) & np.uint64(1)).astype(np.float64) * 2 - 1
    place = ((hashed >> np.uint64(_PLACE_BIT)) % np.uint64(_PLACES)).astype(np.int64)
    counters = np.bincount(bucket, weights=sign, minlength=BUCKETS).astype(np.float64)
    seen = np.zeros(BUCKETS * _PLACES, dtype=np.bool_)
    seen[bucket * _PLACES + place] = True
    free = max(len(seen) - int(seen.sum()), 1)
    return KeySketch(counters, len(values), -len(seen) * float(np.log(free / len(seen))))


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit of a key reaches every bit of its hash."""
    made = values + np.uint64(0x9E3779B97F4A7C15)
    made = (made ^ (made >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    made = (made ^ (made >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return made ^ (made >> np.uint64(31))
