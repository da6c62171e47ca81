"""A view to compute: opened, measured and planned when it is made, run once, cancelled at any time.

computation = Computation(session.spark, view, sources, ComputeConfig(memory_bytes=64 << 20))
summary = computation.run(SinkSpec("parquet", "out"))
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession

from spillway.compute import (
    COLUMNS,
    SPARK,
    STATEMENTS,
    Machine,
    TreeCost,
    UnitCosts,
    WayChoice,
    build_graph,
    column_bytes,
    decide,
    draw_text,
    joined_on_several_keys,
    read_view,
    resident_bytes,
    spark_seconds,
    tree_report,
)
from spillway.compute.trees import CHOSEN, Proposal, choose
from spillway.errors import BudgetError, ComputeError, SourceError
from spillway.job import SPARK_PLAN, TREE, ComputeConfig, SinkSpec, SourceSpec, check_sink
from spillway.model import View, parse_bytes
from spillway.spark.compute.cancellation import CANCELLED
from spillway.spark.compute.columnar_run import can_join_columns, is_small, plain_files
from spillway.spark.compute.execution import Execution, Listener, SegmentOutcome
from spillway.spark.compute.own_plan import OwnPlan
from spillway.spark.compute.relation_statistics import Collected, collect, local_files
from spillway.spark.compute.statistics_cache import StatisticsCache
from spillway.spark.compute.stored_source import check_stored_files, open_stored_source
from spillway.spark.compute.view_writer import ViewWriter
from spillway.spark.sources import columns_of

REPLICATE_BYTES = 256e6
"""Spark builds a replicated table on the driver; beyond this its heap is at risk."""
HEAP_SHARE = 0.4
"""Of the driver's heap, for hash tables, unless a job says how much."""
FREE_SHARE = 0.4
"""Of this machine's free memory, for tasks that join columns, unless a job says how much."""
FILE_FORMATS = ("parquet", "delta")

TABLE_PAGE_SETTING, TABLE_PAGE_DEFAULT = "spark.buffer.pageSize", "32m"
"""The least that one of Spark's hash tables takes; the default as measured, Spark does not tell it."""


class Computation:
    """One view, with the way and the tree that were chosen for it."""

    def __init__(
        self,
        spark: SparkSession,
        view: View | str,
        sources: Mapping[str, DataFrame | SourceSpec],
        config: ComputeConfig | None = None,
        *,
        units: UnitCosts | None = None,
        listener: Listener | None = None,
        keep_statistics: bool = True,
    ) -> None:
        """`keep_statistics` stores statistics for the next computation over the same files, and uses
        those."""
        self._keep_statistics = keep_statistics
        self._spark, self._units, self._listener = spark, units, listener
        self.config = config or ComputeConfig()
        self._running: Execution | OwnPlan | None = None
        self._is_cancelled = False
        query = view if isinstance(view, View) else View.sql(view)
        opened = {
            name: open_stored_source(spark, one) if isinstance(one, SourceSpec) else one
            for name, one in sources.items()
        }
        for name, frame in opened.items():
            if frame.isStreaming:
                raise SourceError(
                    f"source {name} is a stream; compute needs stored relations: use spark.read"
                )
        self.view = read_view(query, {name: columns_of(frame) for name, frame in opened.items()})
        self.sources = {one.source: opened[one.source] for one in self.view.relations}
        self._specs = {name: spec for name in self.sources if isinstance(spec := sources[name], SourceSpec)}
        check_stored_files(spark, self.view, self.sources, self._specs)
        began = time.perf_counter()
        self._collect()
        self.statistics_seconds = time.perf_counter() - began
        began = time.perf_counter()
        self._choose()
        self.planning_seconds = time.perf_counter() - began

    def _collect(self) -> None:
        """Statistics, and the files that tasks could read themselves."""
        config, context = self.config, self._spark.sparkContext
        names = {name: self.sources[name].inputFiles() for name in self._specs}
        local = {
            name: found
            for name, spec in self._specs.items()
            if spec.format.lower() in FILE_FORMATS and (found := local_files(names[name])) is not None
        }
        self.files = {
            name: found
            for name, paths in local.items()
            if (root := _plain_path(self._specs[name])) is not None
            and (found := plain_files(context, self.sources[name], root, paths)) is not None
        }
        is_needed = config.way == TREE or config.tree != CHOSEN or config.memory_bytes is not None
        processors = config.processors or context.defaultParallelism
        self._cache = StatisticsCache(
            self.view, names if self._keep_statistics else {}, self._specs, config.sample
        )
        guessed: list[str] = []

        def made() -> Collected:
            found = collect(
                self.view,
                self.sources,
                local,
                sample=config.sample,
                is_needed=is_needed,
                processors=processors,
            )
            guessed.extend(found.guessed)
            return found

        all_known = config.sample is not None or is_needed or len(local) == len(self.sources)
        self.statistics = (
            self._cache.statistics(lambda: made().statistics) if all_known else made().statistics
        )
        self._guessed = tuple(guessed)

    def _choose(self) -> None:
        """The way and the tree."""
        config = self.config
        graph = build_graph(self.view, self.statistics, rows=config.rows, selectivities=config.selectivity)
        factors = self._cache.factors()
        memory = config.memory_bytes or _heap_bytes(self._spark) * HEAP_SHARE
        machine = Machine(
            processors=config.processors or self._spark.sparkContext.defaultParallelism,
            memory_bytes=memory,
            replicate_bytes=min(REPLICATE_BYTES, memory),
            table_page_bytes=_table_page_bytes(self._spark),
            table_factor=factors.get(STATEMENTS, 1.0),
        )
        self.statements = TreeCost(graph, self._units, machine)
        self._column_factor = factors.get(COLUMNS, 1.0)
        self._column_limit = config.memory_bytes or psutil.virtual_memory().available * FREE_SHARE
        self.own_seconds = spark_seconds(self.statements)
        refusals: dict[str, str] = {}
        if config.way == SPARK_PLAN:
            self._take(WayChoice(SPARK, "asked for"), self.statements, choose(self.statements))
            return
        columns = self._columns(refusals)
        is_forced = config.way == TREE or config.tree != CHOSEN or config.memory_bytes is not None
        if is_forced:
            self._choose_tree(columns, refusals)
            return
        if columns is not None:
            decision = decide({COLUMNS: columns[1].seconds}, self.own_seconds, refusals)
            if decision.way == COLUMNS:
                self._take(decision, *columns)
                return
        plan = choose(self.statements)
        seconds = {STATEMENTS: spark_seconds(self.statements, plan.tree)}
        if self._guessed:
            refusals[STATEMENTS] = (
                f"{', '.join(self._guessed)} are no local Parquet files: to look at their rows takes longer "
                'than it may save (way = "tree" does so)'
            )
            seconds = {}
        elif (pair := joined_on_several_keys(graph)) is not None:
            refusals[STATEMENTS] = (
                f"several keys join {pair[0]} and {pair[1]}, and how these depend on each other is not known"
            )
            seconds = {}
        self._take(decide(seconds, self.own_seconds, refusals), self.statements, plan)

    def _columns(self, refusals: dict[str, str]) -> tuple[TreeCost, Proposal] | None:
        """The best tree over columns, where tasks can join them; `refusals` says why not."""
        if not can_join_columns(self.view, self.sources, self.files):
            refusals[COLUMNS] = "columns: not all relations are plain local Parquet files with integer keys"
            return None
        machine = replace(self.statements.machine, by_columns=True, replicate_bytes=inf, memory_bytes=None)
        model = TreeCost(self.statements.graph, self._units, machine)
        plan = choose(model, self.config.tree)
        if not is_small(model, plan.tree):
            refusals[COLUMNS] = "columns: too many rows for tasks in Python"
            return None
        needed = self._column_bytes(model, plan)
        if needed > self._column_limit:
            refusals[COLUMNS] = (
                f"columns: tasks need about {needed / 1e6:.1f} MB of {self._column_limit / 1e6:.1f} MB"
            )
            return None
        return model, plan

    def _choose_tree(self, columns: tuple[TreeCost, Proposal] | None, refusals: Mapping[str, str]) -> None:
        """A tree runs in any case, and within the memory limit if there is one."""
        if columns is not None:
            self._take(
                WayChoice(COLUMNS, "a tree or a memory limit was given, and tasks can join columns"), *columns
            )
            return
        model = self.statements
        plan = choose(model, self.config.tree)
        needed = resident_bytes(model, plan.tree)
        if self.config.memory_bytes is not None and needed > self.config.memory_bytes:
            raise BudgetError(
                f"[compute] memory = {self.config.memory_bytes / 1e6:.1f} MB cannot be kept: hash tables "
                f"take about {needed / 1e6:.1f} MB at a time; give at least that, or leave memory out"
            )
        self._take(
            WayChoice(STATEMENTS, refusals.get(COLUMNS, "a tree or a memory limit was given")), model, plan
        )

    def _take(self, decision: WayChoice, model: TreeCost, plan: Proposal) -> None:
        self.decision, self.model, self.plan = decision, model, plan

    def _column_bytes(self, model: TreeCost, plan: Proposal) -> float:
        """What all tasks together are estimated to hold."""
        keys = [dict(key.members) for key in self.view.keys]
        one = column_bytes(model.graph, plan.tree, keys)
        return one * model.machine.processors * self._column_factor

    def explain(self) -> str:
        """The way and the tree as text."""
        return draw_text(self.report())

    def report(self) -> dict[str, Any]:
        """The tree as plain values, for JSON."""
        return {**tree_report(self.model, self.plan), **self._about()}

    def _about(self) -> dict[str, Any]:
        return {
            "way": self.decision.way,
            "reason": self.decision.reason,
            "estimated_spark_seconds": round(self.own_seconds, 4),
            "planning_seconds": round(self.planning_seconds, 4),
            "statistics_seconds": round(self.statistics_seconds, 4),
        }

    def run(self, sink: SinkSpec) -> dict[str, Any]:
        """Compute the view into `sink`; the summary has estimated and measured rows of every join."""
        check_sink(sink)
        writer = ViewWriter(sink, self._check_wanted)
        began = time.perf_counter()
        if self.decision.way == SPARK:
            self._running = OwnPlan(self._spark, self.view, self.sources)
            self._check_wanted()
            self._running.run(writer)
            outcomes: list[SegmentOutcome] = []
        else:
            outcomes = self._run_tree(writer)
        seconds = time.perf_counter() - began
        measured = {
            one.number: {
                "seconds": round(one.seconds, 4),
                "step_rows": list(one.step_rows),
                "table_bytes": one.table_bytes,
                "kept": one.kept,
            }
            for one in outcomes
        }
        made = {
            **tree_report(self.model, self.plan, measured),
            **self._about(),
            "rows": writer.rows,
            "seconds": round(seconds, 4),
            "table_bytes_peak": table_bytes_peak(outcomes) if outcomes else None,
            "memory_bytes": self.config.memory_bytes,
        }
        if outcomes and self.config.memory_bytes is not None:
            made["fits_memory"] = table_bytes_peak(outcomes) <= self.config.memory_bytes
        return made

    def _run_tree(self, writer: ViewWriter) -> list[SegmentOutcome]:
        with tempfile.TemporaryDirectory(prefix="spillway-compute-") as scratch:
            self._running = execution = Execution(
                self._spark,
                self.view,
                self.model,
                self.sources,
                Path(scratch),
                self._listener,
                self.files if self.decision.way == COLUMNS else None,
                self._column_limit,
            )
            self._check_wanted()
            try:
                execution.run(self.plan.tree, writer)
            except BudgetError as error:
                self._cache.learn(COLUMNS, self._column_factor * 2)
                self._choose_tree(None, {COLUMNS: f"columns: {error}"})
            else:
                outcomes = execution.outcomes()
                self._learn(table_bytes_peak(outcomes))
                return outcomes
        return self._run_tree(writer)

    def _learn(self, measured: int) -> None:
        """Keep by how much the estimate of memory was off, for the next run over the same files."""
        if self.decision.way == COLUMNS:
            estimated, factor = self._column_bytes(self.model, self.plan), self._column_factor
        else:
            estimated = resident_bytes(self.model, self.plan.tree)
            factor = self.model.machine.table_factor
        if measured > 0 and estimated > 0:
            self._cache.learn(self.decision.way, factor * measured / estimated)

    def cancel(self) -> None:
        """Stop a run from another thread; it ends with an error, and nothing is written."""
        self._is_cancelled = True
        if self._running is not None:
            self._running.cancel()

    def _check_wanted(self) -> None:
        if self._is_cancelled:
            raise ComputeError(CANCELLED)


def _plain_path(one: SourceSpec) -> str | None:
    """Where Parquet files and nothing else are."""
    return None if one.format.lower() != "parquet" or one.options or one.schema else one.path


def table_bytes_peak(outcomes: Sequence[SegmentOutcome]) -> int:
    """The hash tables that were in memory together: those of one statement."""
    sizes: dict[int, int] = {}
    for one in outcomes:
        sizes[one.statement] = sizes.get(one.statement, 0) + one.table_bytes
    return max(sizes.values(), default=0)


def _heap_bytes(spark: SparkSession) -> int:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.Runtime.getRuntime().maxMemory())


def _table_page_bytes(spark: SparkSession) -> int:
    setting = spark.sparkContext.getConf().get(TABLE_PAGE_SETTING, TABLE_PAGE_DEFAULT)
    return parse_bytes(setting or TABLE_PAGE_DEFAULT, TABLE_PAGE_SETTING)
