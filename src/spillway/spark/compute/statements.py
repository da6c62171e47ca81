"""Runs a tree as Spark statements: one for all segments whose hash tables fit into memory together.

Inside a statement every hash table is a Spark job; independent ones run side by side. If memory is too small
for all, statements follow each other: the result of one is written to a scratch directory and read back, so
that only the hash tables of one statement are in memory (dissertation, 3.3).
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spillway.compute import ComputePlan, Input, Segment, kept_segments, statement
from spillway.spark.compute.executor import (
    RESULT,
    WRITTEN,
    RunContext,
    SegmentOutcome,
    Write,
    statement_outcomes,
    tree_session,
)
from spillway.spark.compute.measured_rows import Measured, measure
from spillway.spark.compute.segment_progress import SegmentProgress
from spillway.spark.compute.segment_sql import kept_sql, output_sql, relation_sql, segment_sql
from spillway.spark.compute.source_tables import SourceTables
from spillway.spark.compute.tagged_jobs import TaggedJobs


class StatementExecutor:
    def __init__(self, context: RunContext, plan: ComputePlan) -> None:
        self._context, self._plan = context, plan
        self._jobs = TaggedJobs(context.spark.sparkContext)
        self._tables = SourceTables(context.spark, context.sources, self._jobs.tag)
        self._progress = SegmentProgress(plan.tree, context.listener)
        self._kept = kept_segments(plan.cost, plan.tree)
        self._ran: list[tuple[Segment, float]] = []
        self._running: Segment | None = None

    @cached_property
    def _session(self) -> SparkSession:
        return tree_session(self._context.spark)

    def prepare(self) -> None:
        _ = self._session  # made now: a benchmark's clock starts after this
        self._tables.create()

    def run(self, write: Write) -> None:
        plan = self._plan
        with ExitStack() as closing:
            closing.callback(self._tables.drop)
            self.prepare()
            scratch = TemporaryDirectory(
                prefix="spillway-compute-", dir=self._context.scratch, ignore_cleanup_errors=True
            )
            directory = Path(closing.enter_context(scratch))
            look = None if self._context.listener is None else self._report_built
            closing.enter_context(self._jobs.watched(look))
            for root in plan.tree.segments():
                if root is plan.tree:
                    self._statement(root, lambda rows: write(self._session.sql(output_sql(plan.view, rows))))
                elif root in self._kept:
                    self._statement(root, partial(self._keep, root, directory))
                    closing.callback(self._session.catalog.dropTempView, self._result(root))

    def outcomes(self) -> list[SegmentOutcome]:
        made = []
        for root, seconds in self._ran:
            kept = WRITTEN if root in self._kept else RESULT
            made += statement_outcomes(self._progress.numbers, root, seconds, self._measure(root), kept)
        return sorted(made, key=lambda outcome: outcome.number)

    def cancel(self) -> None:
        self._jobs.cancel()

    def _statement(self, root: Segment, produce: Callable[[str], object]) -> None:
        """Run the statement that ends with `root`: `produce` gets the SQL of its rows."""
        self._jobs.check()
        plan = self._plan
        inside = statement(root, self._kept)
        self._progress.start(inside)
        self._running = root
        began = time.perf_counter()
        try:
            with self._jobs.described(self._description(root)):
                rows = segment_sql(plan.view, plan.cost, root, self._text)
                self._session.conf.set("spark.sql.shuffle.partitions", str(plan.cost.partitions(inside)))
                produce(rows)
        finally:
            self._running = None
        seconds = time.perf_counter() - began
        self._ran.append((root, seconds))
        self._progress.end(inside, seconds)

    def _keep(self, root: Segment, directory: Path, rows: str) -> None:
        """Write the result of a segment, for a later statement to read."""
        frame = self._session.sql(kept_sql(self._plan.view, root.mask, rows))
        path = str(directory / f"segment-{self._progress.numbers[root]}")
        frame.write.parquet(path)
        # Spark frees the hash tables of a finished job once nothing refers to them.
        jvm = self._context.spark.sparkContext._jvm
        assert jvm is not None
        jvm.System.gc()
        self._session.read.schema(frame.schema).parquet(path).createOrReplaceTempView(self._result(root))

    def _text(self, side: Input) -> str | None:
        """The SQL that reads an input; None for a segment inside the statement."""
        if isinstance(side, Segment):
            return self._result(side) if side in self._kept else None
        relation = self._plan.view.relations[side]
        return relation_sql(relation, self._tables.name(relation.source))

    def _report_built(self) -> None:
        """Report segments inside the running statement whose hash tables are built."""
        root = self._running
        if root is None:
            return
        try:
            found = self._measure(root, wait=False)
        except Py4JError:
            return  # Spark has not recorded the statement yet, or has removed it; the end is reported anyway
        for segment, measured in found.items():
            if segment is not root and measured.seconds is not None:
                self._progress.end([segment], measured.seconds)

    def _measure(self, root: Segment, *, wait: bool = True) -> dict[Segment, Measured]:
        return measure(self._session, self._description(root), root, self._kept - {root}, wait=wait)

    def _description(self, segment: Segment) -> str:
        return f"{self._jobs.tag} segment {self._progress.numbers[segment]}"

    def _result(self, segment: Segment) -> str:
        return f"{self._jobs.tag}_segment_{self._progress.numbers[segment]}"
