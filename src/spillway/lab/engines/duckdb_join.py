"""DuckDB's one-shot batch join of the benchmark's files: the speed of the machine when all input is known.

A program (see `process`). Known limit: not incremental, one "epoch".
"""

import argparse
import time
from pathlib import Path

import duckdb

from spillway.lab.engines.data import SHAPES, JoinShape, parquet_row_count
from spillway.lab.engines.process import serve
from spillway.lab.engines.result import DUCKDB, PeerResult


def run(shape: JoinShape, data: Path, out: Path, threads: int) -> PeerResult:
    """Join the streams below `data` into one Parquet file in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / "results.parquet"
    sql = f"COPY ({shape.view_sql}) TO {_quoted(target)} (FORMAT parquet)"
    with duckdb.connect(config={"threads": threads, "preserve_insertion_order": False}) as connection:
        for stream in shape.streams:
            files = _quoted(data / stream / "*.parquet")
            connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet({files})")
        began = time.perf_counter()
        connection.execute(sql)
        seconds = time.perf_counter() - began
    rows_in = sum(parquet_row_count(data / stream) for stream in shape.streams)
    results = parquet_row_count(target)
    return PeerResult(DUCKDB, rows_in, results, seconds, (seconds,), output=str(target))


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=tuple(SHAPES), default="join")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    serve(lambda: run(shape, arguments.data, arguments.out, arguments.threads))


if __name__ == "__main__":
    main()
