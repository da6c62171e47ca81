"""The benchmark's input: keys drawn uniformly, so that a key has about two rows per stream.

Deliberately simpler than a `Workload`: published comparisons use it, and the expected number of results is
known: n rows per stream over n/2 keys give m streams 2^m results per key. Columns `k long, id long, p
string`.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spillway.errors import SourceError
from spillway.workload.payload import payload
from spillway.workload.permutation import combine, stream_key

UNIFORM_SCHEMA = pa.schema(
    [pa.field("k", pa.int64()), pa.field("id", pa.int64()), pa.field("p", pa.string())]
)

_KEY, _PAYLOAD = (np.array([tag], dtype=np.uint64) for tag in (1, 2))


@dataclass(frozen=True, slots=True)
class UniformJoin:
    """Streams of uniform keys in [0, key_count)."""

    key_count: int
    streams: tuple[str, ...] = ("a", "b", "c")
    width_bytes: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        if self.key_count < 1:
            raise SourceError(f"workload: key count {self.key_count}: use 1 or more")

    def rows(self, stream: str, lo: int, hi: int) -> pa.RecordBatch:
        """Rows [lo, hi) of a stream."""
        index = np.arange(lo, hi, dtype=np.uint64)
        key = stream_key(self.seed, stream)
        k = (combine(key, _KEY, index) % np.uint64(self.key_count)).astype(np.int64)
        text = payload(combine(key, _PAYLOAD, index), self.width_bytes)
        return pa.RecordBatch.from_arrays(
            [pa.array(k), pa.array(index.astype(np.int64)), text], schema=UNIFORM_SCHEMA
        )
