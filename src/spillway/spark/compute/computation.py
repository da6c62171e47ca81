"""A view to compute: planned by `plan_computation`, run once, cancelled at any time.

computation = plan_computation(session.spark, view, sources, ComputeConfig(memory_bytes=64 << 20))
summary = computation.run(SinkSpec("parquet", "out"))
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession

from spillway.catalog.stored import TABLE_PAGE_SETTING, StatisticsCache, relation_files, timed_report
from spillway.compute import (
    COLUMNS,
    ComputeConfig,
    ComputePlan,
    PlanFacts,
    Resources,
    UnitCosts,
    can_join_columns,
    choose_plan,
    draw_text,
)
from spillway.errors import BudgetError, ComputeError, EvaluationError
from spillway.job import SinkSpec, SourceSpec, check_sink
from spillway.model import View, parse_bytes
from spillway.spark.compute.executor import PlanExecutor, RunContext, SegmentOutcome, table_bytes_peak
from spillway.spark.compute.executors import EXECUTORS
from spillway.spark.compute.relation_statistics import collect
from spillway.spark.compute.segment_progress import Listener
from spillway.spark.compute.stored_source import open_view
from spillway.spark.compute.tagged_jobs import CANCELLED
from spillway.spark.compute.view_writer import ViewWriter

TABLE_PAGE_DEFAULT = "32m"
"""The least that one of Spark's hash tables takes. The default was measured: Spark does not report it."""


def plan_computation(
    spark: SparkSession,
    view: View | str,
    sources: Mapping[str, DataFrame | SourceSpec],
    config: ComputeConfig | None = None,
    *,
    units: UnitCosts | None = None,
    listener: Listener | None = None,
    keep_statistics: bool = True,
) -> "Computation":
    """Open the sources, collect statistics and choose a plan.

    `keep_statistics` stores statistics for the next computation over the same files, and uses stored ones.
    """
    config = config or ComputeConfig()
    opened = open_view(spark, view if isinstance(view, View) else View.sql(view), sources)
    began = time.perf_counter()
    files = relation_files(
        {name: opened.sources[name].inputFiles() for name in opened.specs},
        opened.specs,
        opened.catalog,
        is_local=(spark.sparkContext.master or "").startswith("local["),
    )
    cache = StatisticsCache.of(
        opened.view, files.names if keep_statistics else {}, opened.specs, config.sample
    )
    resources = _resources(spark)
    processors = config.processors or resources.processors
    collected = collect(opened.view, opened.sources, opened.catalog, files.local, cache, config, processors)
    collected_at = time.perf_counter()
    facts = PlanFacts(
        view=opened.view,
        statistics=collected.statistics,
        resources=resources,
        config=config,
        guessed=collected.guessed,
        can_join_columns=can_join_columns(opened.view, opened.catalog, files.plain),
        units=units,
        memory_factors=cache.factors(),
    )
    plan = choose_plan(facts)
    return Computation(
        RunContext(spark, opened.sources, files.plain, listener),
        facts,
        plan,
        cache,
        statistics_seconds=collected_at - began,
        planning_seconds=time.perf_counter() - collected_at,
    )


class Computation:
    """One view, with its plan and the facts that it was chosen from."""

    def __init__(
        self,
        context: RunContext,
        facts: PlanFacts,
        plan: ComputePlan,
        cache: StatisticsCache,
        *,
        statistics_seconds: float,
        planning_seconds: float,
    ) -> None:
        self.facts, self.plan = facts, plan
        self.statistics_seconds, self.planning_seconds = statistics_seconds, planning_seconds
        self._context, self._cache = context, cache
        self._running: PlanExecutor | None = None
        self._is_cancelled = False

    def explain(self) -> str:
        """The way and the tree as text."""
        return draw_text(self.report())

    def report(self) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        return timed_report(self.plan, self.statistics_seconds, self.planning_seconds)

    def executor(self, plan: ComputePlan, scratch: Path | None = None) -> PlanExecutor:
        """What runs a plan of this view once."""
        return EXECUTORS[plan.way](replace(self._context, scratch=scratch), plan)

    def run(self, sink: SinkSpec) -> dict[str, Any]:
        """Compute the view into `sink`; the summary has estimated and measured rows of every join."""
        check_sink(sink)
        writer = ViewWriter.to(sink, self._check_wanted)
        began = time.perf_counter()
        try:
            outcomes = self._execute(writer)
        except BudgetError as error:  # tasks that join columns need more memory than estimated
            self._cache.learn(COLUMNS, self.plan.column_factor * 2)
            self.plan = choose_plan(self.facts, columns_failed=str(error))
            outcomes = self._execute(writer)
        seconds = time.perf_counter() - began
        measured = {
            outcome.number: {
                "seconds": round(outcome.seconds, 4),
                "step_rows": list(outcome.step_rows),
                "table_bytes": outcome.table_bytes,
                "kept": outcome.kept,
            }
            for outcome in outcomes
        }
        memory_bytes, peak = self.facts.config.memory_bytes, table_bytes_peak(outcomes)
        summary = {
            **timed_report(self.plan, self.statistics_seconds, self.planning_seconds, measured),
            "rows": writer.rows,
            "seconds": round(seconds, 4),
            "table_bytes_peak": peak if outcomes else None,
            "memory_bytes": memory_bytes,
        }
        if outcomes and memory_bytes is not None:
            summary["fits_memory"] = peak <= memory_bytes
        return summary

    def _execute(self, writer: ViewWriter) -> list[SegmentOutcome]:
        """Run the plan; remember by how much its memory estimate was off, for the next run on these files."""
        self._running = executor = self.executor(self.plan)
        self._check_wanted()
        try:
            executor.run(writer)
        except EvaluationError as error:
            raise EvaluationError(self.facts.view.named(str(error))) from error
        outcomes = executor.outcomes()
        factor = self.plan.learned_factor(table_bytes_peak(outcomes))
        if factor is not None:
            self._cache.learn(self.plan.way, factor)
        return outcomes

    def cancel(self) -> None:
        """Stop a run from another thread; it ends with an error, and nothing is written."""
        self._is_cancelled = True
        if self._running is not None:
            self._running.cancel()

    def _check_wanted(self) -> None:
        if self._is_cancelled:
            raise ComputeError(CANCELLED)


def _resources(spark: SparkSession) -> Resources:
    context = spark.sparkContext
    assert context._jvm is not None
    page = context.getConf().get(TABLE_PAGE_SETTING, TABLE_PAGE_DEFAULT) or TABLE_PAGE_DEFAULT
    return Resources(
        processors=context.defaultParallelism,
        heap_bytes=int(context._jvm.java.lang.Runtime.getRuntime().maxMemory()),
        free_bytes=psutil.virtual_memory().available,
        table_page_bytes=parse_bytes(page, TABLE_PAGE_SETTING),
    )
