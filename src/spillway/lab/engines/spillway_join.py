"""Spillway's own run of the join benchmark, under the same rules as its peers.

A program (see `process`). Like the Spark peer it runs the same view once over other files before the clock
starts.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spillway.job import SourceSpec
from spillway.lab.engines.data import HELD_FOR_LONG, SHAPES, WARM_UP_ROWS, JoinShape, fresh, write_warm_up
from spillway.lab.engines.process import serve
from spillway.lab.engines.result import PeerResult
from spillway.lab.engines.spillway_run import run_view
from spillway.spark.session import Session


def run(
    session: Session,
    shape: JoinShape,
    data: Path,
    out: Path,
    processors: int,
    *,
    free_run: bool,
    run_options: Mapping[str, Any] = MappingProxyType({}),
    limit_seconds: float | None = None,
) -> PeerResult:
    options = {} if free_run else {"maxFilesPerTrigger": "1"}
    sources = {
        stream: SourceSpec(stream, "parquet", str(data / stream), shape.schema_sql, options)
        for stream in shape.streams
    }
    return run_view(
        session,
        shape.view_sql,
        sources,
        out,
        processors,
        run_options=run_options,
        limit_seconds=limit_seconds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=tuple(SHAPES), default="join")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--free-run", action="store_true", help="one trigger for all files")
    parser.add_argument("--memory-bytes", type=int, help="budget of one processor")
    parser.add_argument("--results", help="early or deferred; as the engine does by itself if left out")
    parser.add_argument("--limit-seconds", type=float)
    parser.add_argument("--warm-up-rows", type=int, default=WARM_UP_ROWS, help="0: none")
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    given = {"memory_bytes": arguments.memory_bytes, "results": arguments.results}
    run_options = {key: value for key, value in given.items() if value is not None}
    with Session(settings={"spark.master": f"local[{arguments.cores},4]", **HELD_FOR_LONG}) as session:
        if arguments.warm_up_rows:
            warm_up = arguments.out / "warm-up"
            write_warm_up(shape, warm_up, arguments.warm_up_rows)
            run(session, shape, warm_up, fresh(arguments.out), arguments.cores, free_run=False)
        serve(
            lambda: run(
                session, shape, arguments.data, fresh(arguments.out), arguments.cores,
                free_run=arguments.free_run, run_options=run_options, limit_seconds=arguments.limit_seconds,
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
