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

from pyspark.sql import DataFrame, SparkSession

from spillway.compute.build_graph import build_graph
from spillway.compute.column_statistics import column_statistics
from spillway.compute.compute_view import read_view
from spillway.compute.cost import CostModel, Machine
from spillway.compute.explain import explain_tree, tree_report
from spillway.compute.sketch import RelationStatistics
from spillway.compute.trees.choose import choose
from spillway.compute.unit_costs import UnitCosts
from spillway.compute_job import ComputeConfig, check_sink
from spillway.errors import SourceError
from spillway.job import SinkSpec, SourceSpec
from spillway.model.byte_size import parse_bytes
from spillway.spark.compute.columnar_run import can_join_columns, plain_files, stored_relations
from spillway.spark.compute.execution import Execution, Listener, SegmentOutcome
from spillway.spark.compute.relations import read_relations
from spillway.spark.compute.statistics import collect_statistics
from spillway.spark.compute.statistics_cache import cached_statistics
from spillway.spark.compute.stored_source import open_stored_source
from spillway.spark.compute.view_writer import ViewWriter
from spillway.spark.sources import columns_of
from spillway.view import View

REPLICATE_BYTES = 256e6
"""Spark builds a replicated table on the driver; beyond this its heap is at risk."""
MOST_FILE_BYTES = 1 << 30
"""Up to so much the driver looks at files itself; beyond, statistics are a Spark job."""
HEAP_SHARE = 0.4
"""Of the driver's heap, for hash tables, unless a job says how much."""

TABLE_PAGE_SETTING, TABLE_PAGE_DEFAULT = "spark.buffer.pageSize", "32m"
"""The least that one of Spark's hash tables takes; the default as measured, Spark does not tell it."""


class Computation:
    """One view, with the tree that was chosen for it."""

    def __init__(
        self,
        spark: SparkSession,
        view: View | str,
        sources: Mapping[str, DataFrame | SourceSpec],
        config: ComputeConfig | None = None,
        *,
        units: UnitCosts | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._spark, self._listener = spark, listener
        self.config = config or ComputeConfig()
        self._execution: Execution | None = None
        query = view if isinstance(view, View) else View.sql(view)
        self.sources = {
            name: open_stored_source(spark, one) if isinstance(one, SourceSpec) else one
            for name, one in sources.items()
        }
        for name, frame in self.sources.items():
            if frame.isStreaming:
                raise SourceError(
                    f"source {name} is a stream; compute needs stored relations: use spark.read"
                )
        self.view = read_view(query, {name: columns_of(frame) for name, frame in self.sources.items()})
        used = {one.source for one in self.view.relations}
        self.files = {
            name: found
            for name in used
            if (root := _plain_path(sources[name])) is not None
            and (found := plain_files(spark.sparkContext, self.sources[name], root)) is not None
        }
        self.sources = {name: frame for name, frame in self.sources.items() if name in used}
        began = time.perf_counter()
        by_columns = can_join_columns(self.view, self.sources, self.files)
        relations = [] if by_columns else read_relations(self.view, self.sources)

        def collect() -> list[RelationStatistics]:
            if by_columns and self.config.sample >= 1 and _file_bytes(self.files) <= MOST_FILE_BYTES:
                keys = [name for key in self.view.keys for _, name in key.members]
                stored = stored_relations(self.view, self.sources, self.files)
                return column_statistics(stored, [keys] * len(stored))
            frames = relations or read_relations(self.view, self.sources)
            return collect_statistics(self.view, frames, sample=self.config.sample)

        self.statistics = cached_statistics(
            self.view, list(self.sources.values()), collect, sample=self.config.sample
        )
        self.statistics_seconds = time.perf_counter() - began
        graph = build_graph(
            self.view, self.statistics, rows=self.config.rows, selectivities=self.config.selectivity
        )
        memory = self.config.memory_bytes or _heap_bytes(spark) * HEAP_SHARE
        machine = Machine(
            processors=self.config.processors or spark.sparkContext.defaultParallelism,
            memory_bytes=memory,
            replicate_bytes=min(REPLICATE_BYTES, memory),
            table_page_bytes=_table_page_bytes(spark),
        )
        self.model = CostModel(graph, units, machine)
        relations_bytes = sum(self.model.table_bytes(1 << index) for index in range(graph.size))
        if by_columns and relations_bytes * machine.processors <= memory:
            self.model = CostModel(graph, units, replace(machine, by_columns=True, replicate_bytes=inf))
        began = time.perf_counter()
        self.plan = choose(self.model, self.config.tree)
        self.planning_seconds = time.perf_counter() - began

    def explain(self) -> str:
        """The tree as text."""
        return explain_tree(self.model, self.plan)

    def report(self) -> dict[str, Any]:
        """The tree as plain values, for JSON."""
        return {
            **tree_report(self.model, self.plan),
            "planning_seconds": round(self.planning_seconds, 4),
            "statistics_seconds": round(self.statistics_seconds, 4),
        }

    def run(self, sink: SinkSpec) -> dict[str, Any]:
        """Compute the view into `sink`; the summary has estimated and measured rows of every join."""
        check_sink(sink)
        writer = ViewWriter(sink)
        with tempfile.TemporaryDirectory(prefix="spillway-compute-") as scratch:
            self._execution = Execution(
                self._spark, self.view, self.model, self.sources, Path(scratch), self._listener, self.files
            )
            began = time.perf_counter()
            self._execution.run(self.plan.tree, writer)
            seconds = time.perf_counter() - began
        outcomes = self._execution.outcomes()
        measured = {
            one.number: {
                "seconds": round(one.seconds, 4),
                "step_rows": list(one.step_rows),
                "table_bytes": one.table_bytes,
                "kept": one.kept,
            }
            for one in outcomes
        }
        return {
            **tree_report(self.model, self.plan, measured),
            "rows": writer.rows,
            "seconds": round(seconds, 4),
            "planning_seconds": round(self.planning_seconds, 4),
            "statistics_seconds": round(self.statistics_seconds, 4),
            "table_bytes_peak": table_bytes_peak(outcomes),
            "memory_bytes": self.config.memory_bytes,
        }

    def cancel(self) -> None:
        """Stop a run from another thread; it ends with an error, and nothing is written."""
        if self._execution is not None:
            self._execution.cancel()


def _plain_path(one: DataFrame | SourceSpec) -> str | None:
    """Where Parquet files and nothing else are; a DataFrame may be anything."""
    if not isinstance(one, SourceSpec) or one.format.lower() != "parquet" or one.options or one.schema:
        return None
    return one.path


def table_bytes_peak(outcomes: Sequence[SegmentOutcome]) -> int:
    """The hash tables that were in memory together: those of one statement."""
    sizes: dict[int, int] = {}
    for one in outcomes:
        sizes[one.statement] = sizes.get(one.statement, 0) + one.table_bytes
    return max(sizes.values(), default=0)


def _file_bytes(files: Mapping[str, tuple[str, ...]]) -> int:
    return sum(Path(one).stat().st_size for found in files.values() for one in found)


def _heap_bytes(spark: SparkSession) -> int:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.Runtime.getRuntime().maxMemory())


def _table_page_bytes(spark: SparkSession) -> int:
    setting = spark.sparkContext.getConf().get(TABLE_PAGE_SETTING, TABLE_PAGE_DEFAULT)
    return parse_bytes(setting or TABLE_PAGE_DEFAULT, TABLE_PAGE_SETTING)
