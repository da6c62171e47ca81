"""Runs the queries of `bench compute` through all engines in one Spark session, engines taking turns.

Every engine computes every row and column of the view and writes none, because writing is the same for all.
Each engine runs each query `REPEATS` times, in turns, and the median of all but the first counts; trees,
whose differences are small, run two or three times as often. All times include planning: ours is added to the
chosen tree's. Shapes that give the same tree run once. Each tree runs once more, unmeasured, to compare the
checksum of its results with DuckDB's. Both sides collect statistics before; the time for ours is reported
separately. An engine that fails or takes too long is reported as unfinished. All engines share one JVM, so
one that ends the JVM ends the benchmark.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import duckdb
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spillway.compute import Segment, TreeCost, UnitCosts, q_error, steps
from spillway.compute.trees import choose
from spillway.errors import SpillwayError
from spillway.job import SourceSpec
from spillway.lab.bench.compute_memory import short_memory, tree_sum
from spillway.lab.bench.compute_metrics import AS_WRITTEN, CBO, CHOSEN, DUCKDB, SQL_TREES, TREES, QueryRuns
from spillway.lab.engines import (
    ProcessorTime,
    SparkPeer,
    Turn,
    noop,
    query_sum,
    reason,
    take_turns,
    within,
)
from spillway.spark.compute import Computation, SegmentOutcome, plan_computation
from spillway.workload import MultiJoin

REPEATS = 3
LARGE_RELATIONS, LARGE_REPEATS = 24, 2
SQL_QUERIES = 2
"""For this many queries of each size, trees that could join columns also run as Spark statements."""
SHORT_MEMORY_RELATIONS = 32
"""Queries with at least this many relations also run with too little memory (dissertation, 3.13)."""
FAILURES = (SpillwayError, PySparkException, Py4JError, duckdb.Error)
_Run = Turn[list[SegmentOutcome]]


class ComputeBench:
    """Runs the queries in sequence, in one session."""

    def __init__(
        self,
        spark: SparkSession,
        units: UnitCosts,
        scratch: Path,
        engines: Sequence[str],
        limit_seconds: float = 60.0,
    ) -> None:
        self._spark, self._units, self._scratch = spark, units, scratch
        self._engines, self._limit_seconds = engines, limit_seconds
        self._peers = {
            name: SparkPeer(spark, cbo=name == CBO) for name in (AS_WRITTEN, CBO) if name in engines
        }

    def run(self, query: MultiJoin, repeats: int | None = None) -> QueryRuns:
        """All engines on one query; fewer runs if it has many relations."""
        if repeats is None:
            repeats = REPEATS if len(query.relations) < LARGE_RELATIONS else LARGE_REPEATS
        data = self._scratch / f"query-{len(query.relations)}-{query.seed}"
        query.write(data)
        try:
            return self._run(
                query, {relation.name: data / relation.name for relation in query.relations}, repeats
            )
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _tree(self, computation: Computation, model: TreeCost, tree: Segment) -> _Run:
        """One tree, with all of its rows computed and none kept."""
        executor = computation.executor(computation.plan.with_tree(tree, model), self._scratch)
        executor.prepare()  # the peers' tables are there before their clock starts, too
        times = self._clocked(lambda: executor.run(noop), executor.cancel)
        return Turn(*times, executor.outcomes())

    def _run(self, query: MultiJoin, paths: dict[str, Path], repeats: int) -> QueryRuns:
        specs = {name: SourceSpec(name, "parquet", str(path)) for name, path in paths.items()}
        computation = plan_computation(self._spark, query.sql, specs, units=self._units)
        model, statements = computation.plan.cost, computation.plan.statements
        trees = {name: choose(model, name).tree for name in TREES if name in self._engines}
        sql_trees = {
            name: choose(statements, shape).tree
            for name, shape in zip(SQL_TREES, TREES, strict=True)
            if name in self._engines and query.seed < SQL_QUERIES and model is not statements
        }
        first = {(False, tree): name for name, tree in reversed(trees.items())}
        first |= {(True, tree): name for name, tree in reversed(sql_trees.items())}
        actions: dict[str, Callable[[], _Run]] = {
            name: partial(self._tree, computation, statements if is_sql else model, tree)
            for (is_sql, tree), name in reversed(first.items())
        }
        unfinished: dict[str, str] = {}
        counts: dict[str, int] = {}
        checksums: dict[str, str] = {}
        with ExitStack() as closing:
            for name, peer in self._peers.items():
                try:
                    closing.enter_context(peer.tables(paths))
                except FAILURES as error:
                    unfinished[name] = reason(error)
                    continue
                actions[name] = partial(self._timed, partial(peer.run, query.sql), peer.cancel)
            threads = model.machine.processors
            database = closing.enter_context(duckdb.connect(config={"threads": threads}))
            for name, path in paths.items():
                database.read_parquet(f"{path}/*.parquet").create_view(name)
            if DUCKDB in self._engines:
                table = partial(_table, database, query.sql)
                actions[DUCKDB] = partial(self._timed, table, database.interrupt)
            turns = take_turns(actions, repeats, FAILURES, often=TREES, seed=query.seed)
            try:
                answer = within(
                    self._limit_seconds, partial(query_sum, database, query.sql), database.interrupt
                )
                counts[DUCKDB], checksums[DUCKDB] = answer
            except FAILURES as error:
                unfinished[DUCKDB] = reason(error)
        for (is_sql, tree), name in first.items():
            if name not in turns.answers:
                continue
            costs = statements if is_sql else model
            try:
                summed = tree_sum(computation, costs, tree, self._scratch)
                counts[name], checksums[name] = summed
            except FAILURES as error:
                unfinished[name] = reason(error)
        for is_sql, found_trees in ((False, trees), (True, sql_trees)):
            for name, tree in found_trees.items():
                if name != first[is_sql, tree]:
                    turns.give(first[is_sql, tree], name)
        for name in (trees.keys() | sql_trees.keys()) & turns.answers.keys():
            counts.setdefault(name, turns.answers[name][-1].step_rows[-1] or 0)
        for times in (turns.seconds, turns.first_seconds):
            if CHOSEN in times:
                times[CHOSEN] += computation.planning_seconds
        short = None
        if len(query.relations) >= SHORT_MEMORY_RELATIONS:
            short = short_memory(computation, self._units, self._scratch, self._limit_seconds)
        found = turns.answers.get(CHOSEN)
        return QueryRuns(
            relations=len(query.relations),
            seed=query.seed,
            seconds=_rounded(turns.seconds),
            rows=counts,
            checksums=checksums,
            planning_seconds=round(computation.planning_seconds, 4),
            statistics_seconds=round(computation.statistics_seconds, 4),
            q_errors=() if found is None else _errors(computation, trees[CHOSEN], found),
            tree=computation.plan.algorithm if CHOSEN in trees else "",
            first_seconds=_rounded(turns.first_seconds),
            cpu_seconds=_rounded(turns.cpu_seconds),
            unfinished=unfinished | turns.unfinished,
            stopped=turns.stopped,
            all_seconds={
                name: [round(value, 4) for value in seconds] for name, seconds in turns.all_seconds.items()
            },
            columns=model.machine.by_columns,
            way=computation.plan.way,
            short_memory=short,
        )

    def _timed(self, action: Callable[[], object], cancel: Callable[[], object]) -> _Run:
        return Turn(*self._clocked(action, cancel), [])

    def _clocked(self, action: Callable[[], object], cancel: Callable[[], object]) -> tuple[float, float]:
        """Time and processor time. Garbage of the previous engine is collected first."""
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        jvm.System.gc()
        processor_time, began = ProcessorTime(), time.perf_counter()
        within(self._limit_seconds, action, cancel)
        return time.perf_counter() - began, processor_time.seconds()


def _errors(computation: Computation, tree: Segment, outcomes: Sequence[SegmentOutcome]) -> list[float]:
    """The q-error of every join's result."""
    rows = computation.plan.cost.cardinality.rows
    pairs = zip(tree.segments(), outcomes, strict=True)
    return [
        q_error(rows(step.after), measured)
        for segment, outcome in pairs
        for step, measured in zip(steps(computation.plan.cost.graph, segment), outcome.step_rows, strict=True)
        if measured is not None
    ]


def _table(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    database.sql(sql).to_arrow_table()


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}
