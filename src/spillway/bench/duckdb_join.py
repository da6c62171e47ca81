"""DuckDB's one-shot batch join of the benchmark's files: what the machine can do when all input is known.

A program: its last line of output is the answer. Known limit: not incremental, one "epoch".
"""

import argparse
import sys
import time
from pathlib import Path

import duckdb

from spillway.bench.compare import DUCKDB
from spillway.bench.join_data import STREAMS, parquet_row_count
from spillway.bench.peer_result import PeerResult


def run(data: Path, out: Path, threads: int) -> PeerResult:
    """Join data/a, data/b and data/c into one Parquet file in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / "results.parquet"
    a, b, c = (f"read_parquet({_quoted(data / stream / '*.parquet')})" for stream in STREAMS)
    sql = (
        "COPY (SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, a.p AS ap, b.p AS bp, c.p AS cp "
        f"FROM {a} a JOIN {b} b ON a.k = b.k JOIN {c} c ON b.k = c.k) TO {_quoted(target)} (FORMAT parquet)"
    )
    with duckdb.connect(config={"threads": threads, "preserve_insertion_order": False}) as connection:
        began = time.perf_counter()
        connection.execute(sql)
        seconds = time.perf_counter() - began
    rows_in = sum(parquet_row_count(data / stream) for stream in STREAMS)
    return PeerResult(DUCKDB, rows_in, parquet_row_count(target), seconds, (seconds,))


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    sys.stdout.write(run(arguments.data, arguments.out, arguments.threads).to_json() + "\n")


if __name__ == "__main__":
    main()
