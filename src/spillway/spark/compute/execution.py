"""Runs a tree as Spark statements: one for all segments whose hash tables fit into memory together.

Inside a statement every hash table is a Spark job; those that need nothing of each other run side by side.
Where memory is too small for all, statements follow each other; the result of one is written to a scratch
directory and read back, so that only the hash tables of one statement are in memory (dissertation, 3.3).
Invariant: after `run`, also one that failed or was cancelled, no temporary view and no scratch file is left.
"""

import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spillway.compute import (
    ColumnMemoryError,
    ComputeView,
    Input,
    Segment,
    TreeCost,
    kept_segments,
    statement,
)
from spillway.errors import BudgetError, ComputeError
from spillway.spark.compute.cancellation import Cancellation, first_line
from spillway.spark.compute.columnar_run import ColumnarRun, columnar_run
from spillway.spark.compute.measured_rows import Measured, measure
from spillway.spark.compute.segment_sql import kept_sql, output_sql, quoted, relation_sql, segment_sql

SETTINGS: Mapping[str, str] = {
    # The tree is decided: Spark must neither reorder joins nor choose other sides.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.cbo.joinReorder.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.broadcastTimeout": "36000",
    # Hash tables leave nulls out anyway; without filters for that, relations of one shape share their code.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@dataclass(frozen=True, slots=True)
class SegmentEvent:
    """A segment has started or ended."""

    number: int
    segments: int
    finished: bool
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """What one segment took and gave."""

    number: int
    mask: int
    seconds: float
    step_rows: tuple[int | None, ...]
    table_bytes: int
    kept: str
    """built (as a hash table of the statement that it is in), written, or result."""
    statement: int
    """The number of the last segment of its statement."""


Listener = Callable[[SegmentEvent], None]
Write = Callable[[DataFrame], object]


class Execution:
    """One run of one tree."""

    def __init__(
        self,
        spark: SparkSession,
        view: ComputeView,
        model: TreeCost,
        sources: Mapping[str, DataFrame],
        scratch: Path,
        listener: Listener | None = None,
        files: Mapping[str, tuple[str, ...]] | None = None,
        limit_bytes: float | None = None,
    ) -> None:
        """`files` are those of sources that are plain Parquet: if all are, tasks may read them themselves,
        and then hold at most `limit_bytes` together."""
        self._token = f"spillway_{uuid.uuid4().hex[:12]}"
        self._context = spark.sparkContext
        self._spark = spark.newSession()
        for key, value in SETTINGS.items():
            self._spark.conf.set(key, value)
        self._view, self._model = view, model
        self._sources, self._files, self._limit_bytes = sources, files, limit_bytes
        self._scratch = scratch / self._token
        self._listener = listener
        self._is_prepared = False
        self._cancellation = Cancellation(self._context, self._token)
        self._statements: list[tuple[Segment, float]] = []
        self._running: Segment | None = None
        self._kept: frozenset[Segment] = frozenset()
        self._numbers: dict[Segment, int] = {}
        self._told: set[Segment] = set()
        self._columnar: ColumnarRun | None = None

    def prepare(self) -> None:
        """Give the relations names that SQL can use; `run` removes them."""
        for name, frame in self._sources.items():
            frame.createOrReplaceGlobalTempView(self._table(name))
        self._is_prepared = True

    def run(self, tree: Segment, write: Write) -> None:
        """Compute the view; `write` gets the DataFrame of the result and must consume it."""
        self._numbers = {one: number for number, one in enumerate(tree.segments())}
        if self._files:
            self._columnar = columnar_run(
                self._spark, self._view, self._model, tree, self._sources, self._files, self._limit_bytes
            )
        self._kept = kept_segments(self._model, tree) if self._columnar is None else frozenset()
        with ExitStack() as closing:
            for name in self._sources:
                closing.callback(self._spark.catalog.dropGlobalTempView, self._table(name))
            if not self._is_prepared:
                self.prepare()
            closing.callback(shutil.rmtree, self._scratch, ignore_errors=True)
            look = None if self._listener is None else self._tell_built
            closing.enter_context(self._cancellation.watched(look))
            try:
                for segment in self._numbers:
                    if segment in self._kept or segment is tree:
                        self._statement(segment, closing, write if segment is tree else None)
            except (PySparkException, Py4JError) as error:
                self._cancellation.check()
                self.cancel()
                if ColumnMemoryError.__name__ in str(error):
                    raise BudgetError(
                        "tasks that join columns would hold more than the memory limit"
                    ) from None
                raise ComputeError(f"Spark failed: {first_line(error)}") from error
            except BaseException:
                self.cancel()
                raise

    def outcomes(self) -> list[SegmentOutcome]:
        """What the segments of the last run took and gave; asking Spark takes a moment."""
        made = []
        for root, seconds in self._statements:
            for segment, seen in self._measure(root).items():
                took = seconds if segment is root else seen.seconds or 0.0
                kept = "built" if segment is not root else "written" if root in self._kept else "result"
                number, rows, size = self._numbers[segment], seen.step_rows, seen.table_bytes
                statement = self._numbers[root]
                made.append(SegmentOutcome(number, segment.mask, took, rows, size, kept, statement))
        return sorted(made, key=lambda one: one.number)

    def cancel(self) -> None:
        """Stop all jobs of this run."""
        self._cancellation.cancel()

    def _tell_built(self) -> None:
        """Which segments inside the running statement have become hash tables by now."""
        root = self._running
        if root is None:
            return
        try:
            found = self._measure(root, wait=False)
        except Py4JError:
            return  # Spark has not filed the statement yet, or has removed it: the end is told anyway
        for segment, seen in found.items():
            if segment is not root and seen.seconds is not None:
                self._tell(segment, seen.seconds)

    def _measure(self, root: Segment, *, wait: bool = True) -> dict[Segment, Measured]:
        if self._columnar is not None:
            return self._columnar.measured()
        return measure(self._spark, self._description(root), root, self._kept - {root}, wait=wait)

    def _statement(self, root: Segment, closing: ExitStack, write: Write | None) -> None:
        self._cancellation.check()
        description = self._description(root)
        self._context.setLocalProperty("spark.scheduler.pool", description)
        self._context.setLocalProperty("spark.job.description", description)
        self._context.addJobTag(self._token)
        inside = statement(root, self._kept)
        for segment in inside:
            self._tell(segment, None)
        self._running = root
        began = time.perf_counter()
        try:
            self._produce(root, inside, closing, write)
        finally:
            self._running = None
            self._context.removeJobTag(self._token)
            self._context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
            self._context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
        seconds = time.perf_counter() - began
        self._statements.append((root, seconds))
        for segment in inside:
            self._tell(segment, seconds)

    def _produce(self, root: Segment, inside: list[Segment], closing: ExitStack, write: Write | None) -> None:
        if self._columnar is not None and write is not None:
            rows = self._columnar.frame()
            write(rows.selectExpr(*(f"{text} AS {quoted(name)}" for name, text in self._view.outputs)))
            return
        text = segment_sql(self._view, self._model, root, self._text)
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._model.partitions(inside)))
        if write is not None:
            write(self._spark.sql(output_sql(self._view, text)))
            return
        frame = self._spark.sql(kept_sql(self._view, root.mask, text))
        path = self._scratch / f"segment-{self._numbers[root]}"
        frame.write.parquet(str(path))
        # Spark frees the hash tables of a finished job when nothing refers to them any more.
        jvm = self._context._jvm
        assert jvm is not None
        jvm.System.gc()
        name = self._result(root)
        self._spark.read.schema(frame.schema).parquet(str(path)).createOrReplaceTempView(name)
        closing.callback(self._spark.catalog.dropTempView, name)

    def _text(self, one: Input) -> str | None:
        """What reads an input; nothing for a segment inside the statement."""
        if isinstance(one, Segment):
            return self._result(one) if one in self._kept else None
        relation = self._view.relations[one]
        return relation_sql(relation, f"global_temp.{self._table(relation.source)}")

    def _description(self, segment: Segment) -> str:
        return f"{self._token} segment {self._numbers[segment]}"

    def _result(self, segment: Segment) -> str:
        return f"{self._token}_segment_{self._numbers[segment]}"

    def _tell(self, segment: Segment, seconds: float | None) -> None:
        """A start (no seconds), or an end, which is told once."""
        if self._listener is None or segment in self._told:
            return
        if seconds is not None:
            self._told.add(segment)
        number, count = self._numbers[segment], len(self._numbers)
        self._listener(SegmentEvent(number, count, finished=seconds is not None, seconds=seconds or 0.0))

    def _table(self, source: str) -> str:
        return f"{self._token}_{list(self._sources).index(source)}"
