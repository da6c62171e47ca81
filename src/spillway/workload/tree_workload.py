"""The five streams of the plan-level spill experiments (SIGMOD 2006, 6.1; dissertation, 7.3).

A, B and C join on their first column, C's second column with D's first, D's second with E's first. Each of
the three joins has a workload of its own, with its own join ratios and partitions, and a stream takes each
of its columns from the workload of the join that the column is for.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spillway.workload.files import write_stream
from spillway.workload.group_key import partition_of
from spillway.workload.options import parse_options
from spillway.workload.row_slices import rows
from spillway.workload.workload import Workload

STREAMS = ("a", "b", "c", "d", "e")
BLOCKS = 10
"""A tuple range is cut into this many blocks; values of the second column are dealt out inside a block."""
COLUMNS = {"a": (0,), "b": (0,), "c": (0, 1), "d": (1, 2), "e": (2,)}
"""The joins that each stream takes part in, by its columns `x` and `y`."""
SCHEMA_SQL = "x long, y long, id long, p string"
VIEW = (
    "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d, e.id AS e "
    "FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x JOIN d ON c.y = d.x JOIN e ON d.y = e.x "
    "WHERE a.p <> b.p AND b.p <> c.p AND c.p <> d.p AND d.p <> e.p AND e.p <> a.p"
)
"""All payloads differ and travel with their rows until they are compared; the results are narrow."""
TREE = (("a", "b", "c"), "d"), "e"
"""The joins of the literature's experiments, one on top of the other."""


@dataclass(frozen=True, slots=True)
class TreeWorkload:
    ratios: tuple[str, str, str]
    """The join ratios of the three joins, as the workload's option says them."""
    rows: int
    """Per stream."""
    tuple_range: int
    partitions: int = 300
    width_bytes: int = 40
    seed: int = 0

    def workload(self, join: int) -> Workload:
        options = {
            "stream": STREAMS[0],
            "rows": str(self.rows),
            "tupleRange": str(self.tuple_range),
            "joinRatio": self.ratios[join],
            "partitions": str(self.partitions),
            "width": str(self.width_bytes),
            "seed": str(self.seed * len(self.ratios) + join),
        }
        return replace(parse_options(options).workload, streams=STREAMS)

    def piece(self, stream: str, low: int, high: int) -> pa.RecordBatch:
        """Rows [low, high) of a stream."""
        first = rows(self.workload(COLUMNS[stream][0]), stream, low, high)
        second = self._second(stream)[low:high]
        columns = [first.column("k"), pa.array(second), first.column("id"), first.column("p")]
        return pa.RecordBatch.from_arrays(columns, names=["x", "y", "id", "p"])

    def _second(self, stream: str) -> NDArray[np.int64]:
        """The second column of all rows of a stream; for a stream without one, the first column.

        Inside a block, rows of odd partitions of the first column get the values of the later partitions of
        the second, which have the lower ratios. So the output of a partition says little about the final
        results; with independent columns, local and global productivity would be proportional.
        """
        x, y = (self._keys(stream, join) for join in (COLUMNS[stream][0], COLUMNS[stream][-1]))
        dealt = y.copy()
        if len(COLUMNS[stream]) == 1:
            return dealt
        block = max(1, self.tuple_range // BLOCKS)
        odd = partition_of(x, self.partitions) % 2
        later = partition_of(y, self.partitions)
        for low in range(0, self.rows, block):
            here = slice(low, min(self.rows, low + block))
            order = np.argsort(odd[here], kind="stable")
            dealt[here][order] = y[here][np.argsort(later[here], kind="stable")]
        return dealt

    def _keys(self, stream: str, join: int) -> NDArray[np.int64]:
        keys: NDArray[np.int64] = rows(self.workload(join), stream, 0, self.rows).column("k").to_numpy()
        return keys

    def write(self, directory: Path, files: int) -> None:
        """Write each stream as a directory of Parquet files, in order of arrival."""
        for stream in STREAMS:
            write_stream(directory / stream, partial(self.piece, stream), rows=self.rows, files=files)
