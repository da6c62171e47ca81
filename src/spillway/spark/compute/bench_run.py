"""Runs the queries of `bench compute` through all engines in one Spark session, engines taking turns.

Every engine computes every row and column of the view and keeps none, so that writing, which is the same for
all, is left out. Each engine runs each query `REPEATS` times, in turns, and its fastest run counts: a shared
machine disturbs in one direction only. Planning is inside all times. Statistics of both sides are collected
before; ours are reported beside. An engine that fails is reported as not finished; all of them share one JVM,
so one that ends the JVM still ends the benchmark.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import duckdb
import psutil
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spillway.bench.compute_figures import AS_WRITTEN, CBO, CHOSEN, DUCKDB, TREES, QueryRuns
from spillway.bench.take_turns import Turn, reason, take_turns
from spillway.compute.explain import q_error
from spillway.compute.tree import Segment, steps
from spillway.compute.trees.choose import choose
from spillway.compute.unit_costs import UnitCosts
from spillway.errors import SpillwayError
from spillway.job import SourceSpec
from spillway.spark.compute.computation import Computation
from spillway.spark.compute.execution import Execution, SegmentOutcome
from spillway.spark.compute.peer import SparkPeer, noop
from spillway.workload.multi_join import MultiJoin

REPEATS = 2
FAILURES = (SpillwayError, PySparkException, Py4JError, duckdb.Error)
_Run = Turn[list[SegmentOutcome]]


class ComputeBench:
    """One query after the other, in one session."""

    def __init__(self, spark: SparkSession, units: UnitCosts, scratch: Path, engines: Sequence[str]) -> None:
        self._spark, self._units, self._scratch = spark, units, scratch
        self._engines = engines
        self._peers = {
            name: SparkPeer(spark, cbo=name == CBO) for name in (AS_WRITTEN, CBO) if name in engines
        }

    def run(self, query: MultiJoin) -> QueryRuns:
        """All engines on one query."""
        data = self._scratch / f"query-{len(query.relations)}-{query.seed}"
        query.write(data)
        try:
            return self._run(query, {one.name: data / one.name for one in query.relations})
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _tree(self, computation: Computation, tree: Segment) -> _Run:
        """One tree, with all of its rows computed and none kept."""
        view, model = computation.view, computation.model
        execution = Execution(self._spark, view, model, computation.sources, self._scratch)
        execution.prepare()  # the peers' tables are there before their clock starts, too
        seconds, cpu_seconds = _clocked(lambda: execution.run(tree, noop))
        return Turn(seconds, cpu_seconds, execution.outcomes())

    def _run(self, query: MultiJoin, paths: dict[str, Path]) -> QueryRuns:
        specs = {name: SourceSpec(name, "parquet", str(path)) for name, path in paths.items()}
        computation = Computation(self._spark, query.sql, specs, units=self._units)
        plans = {name: choose(computation.model, name) for name in TREES if name in self._engines}
        actions: dict[str, Callable[[], _Run]] = {
            name: partial(self._tree, computation, plan.tree) for name, plan in plans.items()
        }
        unfinished: dict[str, str] = {}
        with ExitStack() as closing:
            for name, peer in self._peers.items():
                try:
                    closing.enter_context(peer.tables(paths))
                except FAILURES as error:
                    unfinished[name] = reason(error)
                    continue
                actions[name] = partial(_timed, partial(peer.run, query.sql))
            threads = computation.model.machine.processors
            database = closing.enter_context(duckdb.connect(config={"threads": threads}))
            for name, path in paths.items():
                database.read_parquet(f"{path}/*.parquet").create_view(name)
            if DUCKDB in self._engines:
                actions[DUCKDB] = partial(_timed, lambda: database.sql(query.sql).to_arrow_table())
            turns = take_turns(actions, REPEATS, FAILURES)
            counts: dict[str, int] = {}
            try:
                counts[DUCKDB] = _count(database, query.sql)
            except duckdb.Error as error:
                unfinished[DUCKDB] = reason(error)
        seconds, cpu_seconds, answers = turns.seconds, turns.cpu_seconds, turns.answers
        for name in plans.keys() & answers.keys():
            counts[name] = answers[name][-1].step_rows[-1] or 0
        if CHOSEN in seconds:
            seconds[CHOSEN] += computation.planning_seconds
        return QueryRuns(
            relations=len(query.relations),
            seed=query.seed,
            seconds={name: round(value, 4) for name, value in seconds.items()},
            rows=counts,
            planning_seconds=computation.planning_seconds,
            statistics_seconds=computation.statistics_seconds,
            q_errors=_errors(computation, plans[CHOSEN].tree, answers[CHOSEN]) if CHOSEN in answers else (),
            tree=plans[CHOSEN].algorithm if CHOSEN in plans else "",
            cpu_seconds={name: round(value, 4) for name, value in cpu_seconds.items()},
            unfinished=unfinished | turns.unfinished,
        )


def _cpu_seconds() -> float:
    """Of this process and all that it started and that still run: Python, and Spark's JVM."""
    own = psutil.Process()
    times = [one.cpu_times() for one in (own, *own.children(recursive=True)) if one.is_running()]
    return float(sum(one.user + one.system for one in times))


def _timed(action: Callable[[], object]) -> _Run:
    return Turn(*_clocked(action), [])


def _clocked(action: Callable[[], object]) -> tuple[float, float]:
    """Time, and processor time."""
    before, began = _cpu_seconds(), time.perf_counter()
    action()
    return time.perf_counter() - began, _cpu_seconds() - before


def _errors(computation: Computation, tree: Segment, outcomes: Sequence[SegmentOutcome]) -> list[float]:
    """The q-error of every join's result."""
    rows = computation.model.cardinality.rows
    pairs = zip(tree.segments(), outcomes, strict=True)
    return [
        q_error(rows(step.after), measured)
        for segment, outcome in pairs
        for step, measured in zip(steps(computation.model.graph, segment), outcome.step_rows, strict=True)
        if measured is not None
    ]


def _count(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    ((count,),) = database.sql(f"SELECT count(*) FROM ({sql})").fetchall()
    return int(count)
