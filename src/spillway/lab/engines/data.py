"""The input of `bench join` and `bench tree`, and the view that all peers answer, in SQL.

`join`: three streams of uniform keys, two rows per key and stream on average, joined on one key. `tree`: a
chain of four streams, each joined with the next on another key, one row per key on average. `pair`: two of
the streams of `join`, for `bench latency`. Payloads have 40 bytes; each peer writes ids and payloads of all
streams to Parquet.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.errors import SourceError
from spillway.workload import UniformJoin, write_stream, write_streams

STREAMS = ("a", "b", "c")
VIEW_OF_KEYS = (
    "SELECT a.k AS k, a.id AS x, b.id AS y, c.id AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"
)
VIEW = f"{VIEW_OF_KEYS} WHERE a.p <> b.p AND b.p <> c.p"
"""All payloads differ, so they are state that must be read; the results themselves are narrow."""
WARM_UP_ROWS = 600_000
WARM_UP_FILE_ROWS = 15_000
MIN_WARM_UP_FILES = 12
"""What each engine joins before its clock starts: enough for the JVM to compile its hot code.

That is mainly the planning of an epoch, so epochs count more than rows. With twelve files instead of forty, a
third of the processor time of the run itself went to the JVM's compiler.
"""
HELD_FOR_LONG = {"spark.network.timeout": "7200s"}
"""For a session that is paused while others run: it must not time out."""
ROWS_PER_KEY = 2
DEFAULT_EPOCHS = 20
WIDTH_BYTES = 40


def write_join_data(directory: Path, *, rows: int, files: int = DEFAULT_EPOCHS, seed: int = 0) -> None:
    """Write `rows` rows per stream, one file per epoch."""
    if rows < ROWS_PER_KEY:
        raise SourceError(f"bench join: {rows} rows per stream: use {ROWS_PER_KEY} or more")
    spec = UniformJoin(rows // ROWS_PER_KEY, JOIN.streams, WIDTH_BYTES, seed)
    write_streams(directory, spec, rows=rows, files=files)


def write_pair_data(directory: Path, *, rows: int, files: int = DEFAULT_EPOCHS, seed: int = 0) -> None:
    """The same for two streams."""
    spec = UniformJoin(max(1, rows // ROWS_PER_KEY), PAIR.streams, WIDTH_BYTES, seed)
    write_streams(directory, spec, rows=rows, files=files)


def write_chain_data(directory: Path, *, rows: int, files: int = DEFAULT_EPOCHS, seed: int = 0) -> None:
    """The same for the chain: `l` joins with the stream before, `r` with the one after."""
    for stream in CHAIN.streams:
        write_stream(directory / stream, partial(chain_rows, stream, rows, seed), rows=rows, files=files)


def write_warm_up(shape: "JoinShape", directory: Path, rows: int) -> None:
    """Other files for the same view."""
    shape.write(directory, rows=rows, files=max(MIN_WARM_UP_FILES, rows // WARM_UP_FILE_ROWS))


def chain_rows(stream: str, keys: int, seed: int, low: int, high: int) -> pa.RecordBatch:
    """Rows of one stream of the chain."""
    left, right = (
        UniformJoin(keys, CHAIN.streams, WIDTH_BYTES, seed * 2 + side).rows(stream, low, high)
        for side in (0, 1)
    )
    return pa.RecordBatch.from_arrays(
        [left.column("k"), right.column("k"), left.column("id"), left.column("p")],
        names=["l", "r", "id", "p"],
    )


@dataclass(frozen=True, slots=True)
class JoinShape:
    """A benchmark's streams and view."""

    streams: tuple[str, ...]
    schema_sql: str
    view_sql: str
    write: Callable[..., None]


JOIN = JoinShape(
    ("a", "b", "c"),
    "k bigint, id bigint, p string",
    "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, a.p AS ap, b.p AS bp, c.p AS cp "
    "FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
    write_join_data,
)
CHAIN = JoinShape(
    ("a", "b", "c", "d"),
    "l bigint, r bigint, id bigint, p string",
    "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, d.id AS d_id, "
    "a.p AS ap, b.p AS bp, c.p AS cp, d.p AS dp "
    "FROM a JOIN b ON a.r = b.l JOIN c ON b.r = c.l JOIN d ON c.r = d.l",
    write_chain_data,
)
PAIR = JoinShape(
    ("a", "b"),
    "k bigint, id bigint, p string",
    "SELECT a.id AS a_id, b.id AS b_id, a.p AS ap, b.p AS bp FROM a JOIN b ON a.k = b.k",
    write_pair_data,
)
SHAPES = {"join": JOIN, "tree": CHAIN, "pair": PAIR}


def fresh(out: Path) -> Path:
    """A new directory for each run: Spark's state stores write to the old one after a run has ended."""
    out.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="run-", dir=out))


def parquet_row_count(path: Path) -> int:
    """Rows of a Parquet file, or of all those under a directory, from their footers."""
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    return sum(pq.read_metadata(file).num_rows for file in files)
