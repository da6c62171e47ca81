"""Spillway's run of a TPC-H query over streams of files: a program (see `process`).

One file of each table is read per epoch. Before the clock starts, the same view runs twice over other files,
without a budget.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spillway.job import SourceSpec
from spillway.lab.engines.data import HELD_FOR_LONG, fresh
from spillway.lab.engines.process import serve
from spillway.lab.engines.result import PeerResult
from spillway.lab.engines.spillway_run import run_view
from spillway.model import View
from spillway.spark.session import Session
from spillway.workload import QUERIES, STREAM_TREES, tables_of

WARM_UP_RUNS = 2


def run(
    session: Session,
    query: str,
    data: Path,
    out: Path,
    processors: int,
    *,
    planned: bool,
    run_options: Mapping[str, Any] = MappingProxyType({}),
    limit_seconds: float | None = None,
) -> PeerResult:
    view = View.sql(QUERIES[query])
    if not planned:
        view = view.with_tree(*STREAM_TREES[query])
    sources = {
        name: SourceSpec(name, "parquet", str(path), options={"maxFilesPerTrigger": "1"})
        for name, path in tables_of(query, data).items()
    }
    return run_view(
        session, view, sources, out, processors, run_options=run_options, limit_seconds=limit_seconds
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--query", choices=tuple(STREAM_TREES), required=True)
    parser.add_argument("--planned", action="store_true", help="the planner's own tree")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory-bytes", type=int, help="budget of one processor")
    parser.add_argument("--results", help="early or deferred; as the engine does by itself if left out")
    parser.add_argument("--limit-seconds", type=float)
    parser.add_argument("--warm-up", type=Path, help="files to join first")
    arguments = parser.parse_args()
    given = {"memory_bytes": arguments.memory_bytes, "results": arguments.results}
    run_options = {key: value for key, value in given.items() if value is not None}
    with Session(settings={"spark.master": f"local[{arguments.cores},4]", **HELD_FOR_LONG}) as session:

        def turn(data: Path, **options: Any) -> PeerResult:
            out = fresh(arguments.out)
            query, planned = arguments.query, arguments.planned
            return run(session, query, data, out, arguments.cores, planned=planned, **options)

        for _ in range(WARM_UP_RUNS if arguments.warm_up else 0):
            turn(arguments.warm_up)
        serve(lambda: turn(arguments.data, run_options=run_options, limit_seconds=arguments.limit_seconds))


if __name__ == "__main__":
    main()
