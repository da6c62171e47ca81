"""Runs a query of `bench tpch` by `compute` and by Spark's own plan, in turns, in one session.

Both begin with nothing: they open the tables, plan, and write the result as Parquet. `compute` also makes its
statistics, every time. Both have the settings of the session; Spark gets the text of the query as it is.
"""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from spillway.compute import UnitCosts
from spillway.errors import ComputeError
from spillway.job import SinkSpec, SourceSpec
from spillway.spark.compute import plan_computation
from spillway.workload import QUERIES, tables_of

WARM_UPS = 2


@dataclass(slots=True)
class TpchRuns:
    """The times of one query, a turn each; warm-ups are not among them."""

    query: str
    compute_seconds: list[float] = field(default_factory=list)
    spark_seconds: list[float] = field(default_factory=list)
    opening_seconds: list[float] = field(default_factory=list)
    """Of Spark's times, until the tables are open."""
    statistics_seconds: list[float] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)


class TpchBench:
    def __init__(self, spark: SparkSession, units: UnitCosts, data: Path, scratch: Path) -> None:
        self._spark, self._units, self._data, self._scratch = spark, units, data, scratch

    def run(self, query: str, repeats: int) -> TpchRuns:
        """All turns of one query; in every other one Spark begins. Results are compared once."""
        runs, paths = TpchRuns(query), tables_of(query, self._data)
        for turn in range(-WARM_UPS, repeats):
            for is_ours in (True, False) if turn % 2 else (False, True):
                out = self._scratch / ("ours" if is_ours else "spark")
                (self._compute if is_ours else self._own)(runs, paths, out, turn >= 0)
            if turn == -WARM_UPS:
                self._compare(query)
            shutil.rmtree(self._scratch / "ours")
            shutil.rmtree(self._scratch / "spark")
        return runs

    def _compute(self, runs: TpchRuns, paths: dict[str, Path], out: Path, counts: bool) -> None:
        self._collect_garbage()
        began = time.perf_counter()
        specs = {name: SourceSpec(name, "parquet", str(path)) for name, path in paths.items()}
        computation = plan_computation(
            self._spark, QUERIES[runs.query], specs, units=self._units, keep_statistics=False
        )
        runs.summary = computation.run(SinkSpec("parquet", str(out)))
        if counts:
            runs.compute_seconds.append(time.perf_counter() - began)
            runs.statistics_seconds.append(computation.statistics_seconds)

    def _own(self, runs: TpchRuns, paths: dict[str, Path], out: Path, counts: bool) -> None:
        self._collect_garbage()
        began = time.perf_counter()
        session = self._spark.newSession()
        for name, path in paths.items():
            session.read.parquet(str(path)).createOrReplaceTempView(name)
        opened = time.perf_counter()
        session.sql(QUERIES[runs.query]).write.parquet(str(out))
        if counts:
            runs.spark_seconds.append(time.perf_counter() - began)
            runs.opening_seconds.append(opened - began)

    def _compare(self, query: str) -> None:
        """The same rows, as bags."""
        ours, theirs = (f"read_parquet('{self._scratch}/{name}/*.parquet')" for name in ("ours", "spark"))
        with duckdb.connect() as database:
            for one, other in ((ours, theirs), (theirs, ours)):
                ((wrong,),) = database.execute(
                    f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
                ).fetchall()
                if wrong:
                    raise ComputeError(f"bench tpch: {wrong} rows of {query} differ from Spark's")

    def _collect_garbage(self) -> None:
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        jvm.System.gc()
