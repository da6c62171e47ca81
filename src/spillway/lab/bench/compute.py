"""The benchmark `compute`: random multi-join queries through our trees, Spark's own plans, and DuckDB.

DuckDB, one process without exchange, is an upper bound, not a competitor.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.job import SPARK_DEFAULTS, read_costs
from spillway.lab.bench.compute_claims import claims
from spillway.lab.bench.compute_metrics import CHOSEN, ENGINES, QueryRuns, compute_metrics
from spillway.workload import RESULT_ROWS, ROWS, generate_query

RELATIONS = (8, 12, 16, 24, 32)
DEFAULT_QUERIES = {24: 3, 32: 3}
"""Queries by number of relations, else `QUERIES`: the whole run takes at most half an hour on two cores."""
QUERIES = 8
WARM_UP_SEEDS = (1001, 1002)
WARM_UP_RELATIONS, WARM_UP_REPEATS = 8, 2


def bench_compute(
    *,
    relations: Sequence[int],
    queries: int | None,
    engines: Sequence[str],
    scale: int,
    limit_seconds: float,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Runs all queries and compares; `scale` multiplies the relations' rows, a run that takes longer than
    `limit_seconds` is stopped."""
    unknown = [engine for engine in engines if engine not in ENGINES]
    if unknown or CHOSEN not in engines:
        raise JobError(f"bench compute: engines are {', '.join(ENGINES)}, and chosen must be among them")
    if any(count < 2 for count in relations):
        raise JobError("bench compute: a query joins 2 relations or more")
    from spillway.lab.bench.compute_run import ComputeBench
    from spillway.spark.session import Session

    rows = (ROWS[0] * scale, ROWS[1] * scale)
    results = (RESULT_ROWS[0] * scale, RESULT_ROWS[1] * scale)
    runs: list[QueryRuns] = []
    with tempfile.TemporaryDirectory(prefix="spillway-bench-compute-") as scratch:
        settings = {**SPARK_DEFAULTS, "spark.sql.warehouse.dir": f"{scratch}/warehouse"}
        with Session(settings=settings) as session:
            bench = ComputeBench(session.spark, read_costs(), Path(scratch), engines, limit_seconds)
            for seed in WARM_UP_SEEDS:
                note(f"warming up on a query of {WARM_UP_RELATIONS} relations")
                note(_line(bench.run(generate_query(WARM_UP_RELATIONS, seed), WARM_UP_REPEATS)))
            for count in relations:
                for seed in range(queries or DEFAULT_QUERIES.get(count, QUERIES)):
                    runs.append(bench.run(generate_query(count, seed, rows=rows, result_rows=results)))
                    note(_line(runs[-1]))
    return {
        "bench": "compute",
        "limit_seconds": limit_seconds,
        "relations": list(relations),
        "scale": scale,
        **compute_metrics(runs),
        "claims": claims(runs),
        "runs": [
            {**asdict(query_runs), "q_errors": [round(error, 3) for error in query_runs.q_errors]}
            for query_runs in runs
        ],
    }


def _line(runs: QueryRuns) -> str:
    times = ", ".join(
        f"{name} {seconds:.2f} ({runs.cpu_seconds.get(name, 0.0):.2f})"
        for name, seconds in runs.seconds.items()
    )
    failed = "".join(f"; {name} did not finish: {why}" for name, why in runs.unfinished.items())
    what = f"{runs.relations} relations, query {runs.seed} ({runs.tree}, {runs.way})"
    return f"{what}, seconds (of processors): {times}{failed}"
