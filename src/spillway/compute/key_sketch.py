"""The sketch of an integer key column, made with numpy; `sketch` explains what it is for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.compute.sketch import BUCKETS, KeySketch

_SIGN_BIT, _PLACE_BIT, _PLACES = 40, 20, 64


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
