"""The five streams of the plan-level spill experiments (SIGMOD 2006, 6.1; dissertation, 7.3).

A, B and C join on their first column, C's second column with D's first, D's second with E's first. Each of
the three joins has a workload of its own, with its own join ratios and partitions, and a stream takes each
of its columns from the workload of the join that the column is for.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from spillway.workload.files import write_stream
from spillway.workload.options import parse_options
from spillway.workload.rows import rows
from spillway.workload.workload import Workload

STREAMS = ("a", "b", "c", "d", "e")
COLUMNS = {"a": (0,), "b": (0,), "c": (0, 1), "d": (1, 2), "e": (2,)}
"""The joins that each stream takes part in, by its columns `x` and `y`."""
SCHEMA_SQL = "x long, y long, id long, p string"
VIEW = (
    "SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d, e.id AS e "
    "FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x JOIN d ON c.y = d.x JOIN e ON d.y = e.x "
    "WHERE a.p <> b.p AND b.p <> c.p AND c.p <> d.p AND d.p <> e.p AND e.p <> a.p"
)
"""The payloads, all different, travel with their rows until all are compared; the results are narrow."""


@dataclass(frozen=True, slots=True)
class TreeJoin:
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

    def slice(self, stream: str, low: int, high: int) -> pa.RecordBatch:
        """Rows [low, high) of a stream."""
        made = [rows(self.workload(join), stream, low, high) for join in COLUMNS[stream]]
        first, last = made[0], made[-1]
        columns = [first.column("k"), last.column("k"), first.column("id"), first.column("p")]
        return pa.RecordBatch.from_arrays(columns, names=["x", "y", "id", "p"])

    def write(self, directory: Path, files: int) -> None:
        """The streams as directories of Parquet files, which come one after the other."""
        for stream in STREAMS:
            write_stream(directory / stream, partial(self.slice, stream), rows=self.rows, files=files)
