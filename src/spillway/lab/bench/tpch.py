"""The benchmark `tpch`: joins of TPC-H by `compute`, statistics included, against Spark's own plan."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from spillway.errors import JobError
from spillway.job import SPARK_DEFAULTS, read_costs
from spillway.workload import tables_of

if TYPE_CHECKING:
    from spillway.lab.bench.tpch_run import TpchRuns

DEFAULT_QUERIES = ("q3", "q9_columns")


def bench_tpch(
    *, data: Path, queries: Sequence[str], repeats: int, note: Callable[[str], None]
) -> dict[str, Any]:
    """Medians of `repeats` turns each, after warming up; below 1, `compute` is faster."""
    if not data.is_dir():
        raise JobError(f"bench tpch: {data} is not a directory; give one with customer.parquet and so on")
    for query in queries:
        tables_of(query, data)
    from spillway.lab.bench.tpch_run import TpchBench
    from spillway.spark.session import Session

    metrics = []
    with (
        tempfile.TemporaryDirectory(prefix="spillway-bench-tpch-") as scratch,
        Session(settings=SPARK_DEFAULTS) as session,
    ):
        bench = TpchBench(session.spark, read_costs(), data, Path(scratch))
        for query in queries:
            metrics.append(query_metrics(bench.run(query, repeats)))
            note(_line(metrics[-1]))
    return {
        "bench": "tpch",
        "repeats": repeats,
        "ratio_worst": max(query["ratio"] for query in metrics),
        "queries": metrics,
    }


def query_metrics(runs: "TpchRuns") -> dict[str, Any]:
    """Of one query: medians, and what ran."""
    compute, spark = median(runs.compute_seconds), median(runs.spark_seconds)
    opening = median(runs.opening_seconds)
    return {
        "query": runs.query,
        "way": runs.summary["way"],
        "reason": runs.summary["reason"],
        "rows": runs.summary["rows"],
        "compute_seconds": round(compute, 3),
        "statistics_seconds": round(median(runs.statistics_seconds), 3),
        "spark_seconds": round(spark, 3),
        "spark_opening_seconds": round(opening, 3),
        "ratio": round(compute / spark, 3),
        "ratio_to_spark_without_opening": round(compute / (spark - opening), 3),
        "all_compute_seconds": [round(seconds, 3) for seconds in runs.compute_seconds],
        "all_spark_seconds": [round(seconds, 3) for seconds in runs.spark_seconds],
    }


def _line(query: dict[str, Any]) -> str:
    return (
        f"{query['query']}: {query['compute_seconds']:.2f} s ({query['way']}; statistics "
        f"{query['statistics_seconds']:.2f} s), Spark {query['spark_seconds']:.2f} s: "
        f"{query['ratio']:.2f} times as long"
    )
