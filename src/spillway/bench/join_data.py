"""The input of `bench join`, and the names its peers agree on.

Three streams of uniform keys, two rows per key and stream on average, 40 bytes of payload; each peer
joins them on `k` and writes ids and payloads of all three to Parquet.
"""

from pathlib import Path

import pyarrow.parquet as pq

from spillway.errors import SourceError
from spillway.workload import UniformJoin, write_streams

WARM_UP_ROWS = 300_000
WARM_UP_FILES = 12
"""What each engine joins before its clock starts: enough for the JVM to compile what it runs all the time.

With three files of 2,000 rows a third of the processor time of the run itself went to the JVM's compiler.
"""
STREAMS = ("a", "b", "c")
SCHEMA_SQL = "k bigint, id bigint, p string"
ROWS_PER_KEY = 2
DEFAULT_EPOCHS = 20
WIDTH_BYTES = 40


def write_join_data(directory: Path, *, rows: int, files: int = DEFAULT_EPOCHS, seed: int = 0) -> None:
    """Write `rows` rows per stream, one file per epoch."""
    if rows < ROWS_PER_KEY:
        raise SourceError(f"bench join: {rows} rows per stream: use {ROWS_PER_KEY} or more")
    spec = UniformJoin(rows // ROWS_PER_KEY, STREAMS, WIDTH_BYTES, seed)
    write_streams(directory, spec, rows=rows, files=files)


def parquet_row_count(path: Path) -> int:
    """Rows of a Parquet file, or of all those under a directory, from their footers."""
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    return sum(pq.read_metadata(file).num_rows for file in files)
