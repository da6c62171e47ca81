"""Runs a tree as one Spark job of Python tasks that join columns (`spillway.compute.columnar`).

Each task reads all relations and may hold an equal part of the memory limit; one that would exceed it ends
the run with a BudgetError. Rows and memory that tasks count come back through an accumulator.
"""

import time
from collections.abc import Callable, Iterator
from functools import cached_property

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import Accumulator, AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spillway.compute import (
    ColumnarJoin,
    ColumnMemoryError,
    ComputePlan,
    ShareOfJoin,
    column_types,
    output_columns,
    quoted,
    stored_relations,
)
from spillway.errors import BudgetError
from spillway.spark.compute.executor import (
    RunContext,
    SegmentOutcome,
    Write,
    statement_outcomes,
    tree_session,
)
from spillway.spark.compute.measured_rows import Measured
from spillway.spark.compute.segment_progress import SegmentProgress
from spillway.spark.compute.tagged_jobs import TaggedJobs
from spillway.spark.sources import columns_of

Counts = dict[tuple[int, int], int]
"""Rows by segment and join; `MEMORY` is what all tasks held."""
MEMORY = (-1, -1)


class _Sum(AccumulatorParam[Counts]):
    def zero(self, value: Counts) -> Counts:
        return dict.fromkeys(value, 0)

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        for key, count in value2.items():
            value1[key] = value1.get(key, 0) + count
        return value1


class ColumnExecutor:
    def __init__(self, context: RunContext, plan: ComputePlan) -> None:
        self._context, self._plan = context, plan
        self._jobs = TaggedJobs(context.spark.sparkContext)
        self._progress = SegmentProgress(plan.tree, context.listener)
        self._counts: Accumulator[Counts] = context.spark.sparkContext.accumulator(Counts(), _Sum())
        self._seconds = 0.0

    @cached_property
    def _session(self) -> SparkSession:
        return tree_session(self._context.spark)

    def prepare(self) -> None:
        _ = self._session  # made now: a benchmark's clock starts after this

    def run(self, write: Write) -> None:
        numbers = self._progress.numbers
        with self._jobs.watched():
            self._jobs.check()
            self._progress.start(numbers)
            began = time.perf_counter()
            with self._jobs.described(f"{self._jobs.tag} segment {numbers[self._plan.tree]}"):
                self._produce(write)
            self._seconds = time.perf_counter() - began
            self._progress.end(numbers, self._seconds)

    def outcomes(self) -> list[SegmentOutcome]:
        counts, tree = self._counts.value, self._plan.tree
        found = {}
        for segment, number in self._progress.numbers.items():
            rows = tuple(counts.get((number, step), 0) for step in range(len(segment.builds)))
            found[segment] = Measured(rows, counts.get(MEMORY, 0) if segment is tree else 0)
        return statement_outcomes(self._progress.numbers, tree, self._seconds, found)

    def cancel(self) -> None:
        self._jobs.cancel()

    def _produce(self, write: Write) -> None:
        outputs = (f"{text} AS {quoted(name)}" for name, text in self._plan.view.outputs)
        try:
            write(self._joined().selectExpr(*outputs))
        except (PySparkException, Py4JError) as error:
            self._jobs.check()
            if ColumnMemoryError.__name__ not in str(error):
                raise
            raise BudgetError("tasks that join columns would hold more than the memory limit") from None

    def _joined(self) -> DataFrame:
        """The joined rows, with the columns that the result needs."""
        plan, context = self._plan, self._context
        shares, limit = plan.cost.machine.processors, plan.column_limit_bytes
        catalog = {name: columns_of(frame) for name, frame in context.sources.items()}
        outputs, types = output_columns(plan.view), column_types(plan.view, catalog, context.files)
        join = ColumnarJoin(
            plan.cost.graph,
            plan.tree,
            stored_relations(plan.view, catalog, context.files),
            tuple(dict(key.members) for key in plan.view.keys),
            tuple(outputs),
            None if limit is None else limit / shares,
        )
        schema = ", ".join(f"{quoted(name)} {types[name]}" for _, name in outputs)
        tasks = self._session.range(0, shares, 1, shares)
        return tasks.mapInArrow(_task(join, shares, self._counts.add), schema)


def _task(
    join: ColumnarJoin, shares: int, add: Callable[[Counts], None]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                share = ShareOfJoin(
                    join, number, shares, lambda segment, step, rows: add({(segment, step): rows})
                )
                yield from share.batches()
                add({MEMORY: share.peak_bytes})

    return run
