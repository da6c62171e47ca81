"""Runs a tree: every segment is a Spark job of its own, in a scheduler pool of its own.

Segments that need nothing of each other run side by side. A result that another segment needs is kept cached,
or, with a memory limit, written to a scratch directory and read back; segments then run one after the other,
so that the hash tables of one segment only are in memory (dissertation, 3.3). Invariant: after `run`, also
one that failed or was cancelled, nothing is cached, and no temporary view and no scratch file is left.
"""

import math
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spillway.compute.compute_view import ComputeView
from spillway.compute.cost import CostModel
from spillway.compute.tree import Input, Segment, mask_of_input
from spillway.errors import ComputeError
from spillway.spark.compute.measured_rows import measure
from spillway.spark.compute.segment_sql import output_sql, relation_sql, segment_sql

CANCEL_SECONDS = 0.05
SETTINGS: Mapping[str, str] = {
    # The tree is decided: Spark must neither reorder joins nor choose other sides.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.cbo.joinReorder.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.broadcastTimeout": "36000",
    # What is cached is read once or twice: to compress it costs more than it gives.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
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
    """cached, written, or result."""


Listener = Callable[[SegmentEvent], None]
Write = Callable[[DataFrame], object]


class Execution:
    """One run of one tree."""

    def __init__(
        self,
        spark: SparkSession,
        view: ComputeView,
        model: CostModel,
        sources: Mapping[str, DataFrame],
        scratch: Path,
        listener: Listener | None = None,
    ) -> None:
        self._token = f"spillway_{uuid.uuid4().hex[:12]}"
        self._context = spark.sparkContext
        self._spark = spark.newSession()
        for key, value in SETTINGS.items():
            self._spark.conf.set(key, value)
        self._view, self._model = view, model
        self._sources = sources
        self._scratch = scratch / self._token
        self._listener = listener
        self._is_prepared = False
        self._cancelled, self._ended = threading.Event(), threading.Event()
        self._finished: list[tuple[Segment, float, str]] = []
        self._numbers: dict[Segment, int] = {}

    def prepare(self) -> None:
        """Give the relations names that SQL can use; `run` removes them."""
        for name, frame in self._sources.items():
            frame.createOrReplaceGlobalTempView(self._table(name))
        self._is_prepared = True

    def run(self, tree: Segment, write: Write) -> None:
        """Compute the view; `write` gets the DataFrame of the result and must consume it."""
        self._numbers = {one: number for number, one in enumerate(tree.segments())}
        with ExitStack() as closing:
            for name in self._sources:
                closing.callback(self._spark.catalog.dropGlobalTempView, self._table(name))
            if not self._is_prepared:
                self.prepare()
            closing.callback(shutil.rmtree, self._scratch, ignore_errors=True)
            watcher = threading.Thread(target=self._watch, name=f"{self._token}-watch", daemon=True)
            watcher.start()
            closing.callback(watcher.join)
            closing.callback(self._ended.set)
            pool = closing.enter_context(ThreadPoolExecutor(max_workers=max(1, len(self._numbers))))
            try:
                self._result(tree, pool, closing, write)
            except (PySparkException, Py4JError) as error:
                if self._cancelled.is_set():
                    raise ComputeError("the computation was cancelled; nothing was written") from None
                self.cancel()
                raise ComputeError(f"Spark failed: {_reason(error)}") from error
            except BaseException:
                self.cancel()
                raise

    def outcomes(self) -> list[SegmentOutcome]:
        """What the segments of the last run took and gave; asking Spark takes a moment."""
        made = []
        for segment, seconds, kept in self._finished:
            seen = measure(self._spark, self._description(segment), len(segment.builds))
            number = self._numbers[segment]
            made.append(SegmentOutcome(number, segment.mask, seconds, seen.step_rows, seen.table_bytes, kept))
        return sorted(made, key=lambda one: one.number)

    def cancel(self) -> None:
        """Stop all jobs of this run."""
        self._cancelled.set()

    def _watch(self) -> None:
        """Spark cancels the jobs of a tag that run now, not those that start next: tell it until the end."""
        while not self._ended.wait(CANCEL_SECONDS):
            if self._cancelled.is_set():
                self._context.cancelJobsWithTag(self._token)

    def _result(
        self, segment: Segment, pool: ThreadPoolExecutor, closing: ExitStack, write: Write | None
    ) -> str:
        """The text that reads the result of a segment, after those that it needs; the last one is written."""
        children = segment.children
        if self._model.machine.memory_bytes is not None or len(children) < 2:
            tables = {child: self._result(child, pool, closing, None) for child in children}
        else:
            started: dict[Segment, Future[str]] = {
                child: pool.submit(self._result, child, pool, closing, None) for child in children
            }
            tables = {child: future.result() for child, future in started.items()}

        def table_of(one: Input) -> str:
            if isinstance(one, Segment):
                return tables[one]
            relation = self._view.relations[one]
            return relation_sql(relation, f"global_temp.{self._table(relation.source)}")

        return self._run(segment, segment_sql(self._view, self._model, segment, table_of), closing, write)

    def _run(self, segment: Segment, text: str, closing: ExitStack, write: Write | None) -> str:
        number = self._numbers[segment]
        description = self._description(segment)
        if self._cancelled.is_set():
            raise ComputeError("the computation was cancelled; nothing was written")
        self._context.setLocalProperty("spark.scheduler.pool", description)
        self._context.setLocalProperty("spark.job.description", description)
        self._context.addJobTag(self._token)
        self._tell(SegmentEvent(number, len(self._numbers), finished=False))
        began = time.perf_counter()
        try:
            name, kept = self._produce(segment, text, number, closing, write)
        finally:
            self._context.removeJobTag(self._token)
            self._context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
            self._context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
        seconds = time.perf_counter() - began
        self._finished.append((segment, seconds, kept))
        self._tell(SegmentEvent(number, len(self._numbers), finished=True, seconds=seconds))
        return name

    def _produce(
        self, segment: Segment, text: str, number: int, closing: ExitStack, write: Write | None
    ) -> tuple[str, str]:
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._partitions(segment)))
        if write is not None:
            write(self._spark.sql(output_sql(self._view, text)))
            return "", "result"
        frame = self._spark.sql(text)
        name = f"{self._token}_{number}"
        if self._model.machine.memory_bytes is None:
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            closing.callback(frame.unpersist)
            frame.count()
            kept = "cached"
        else:
            path = self._scratch / f"segment-{number}"
            frame.write.parquet(str(path))
            frame = self._spark.read.schema(frame.schema).parquet(str(path))
            kept = "written"
            # Spark frees the hash tables of a finished job when nothing refers to them any more.
            jvm = self._context._jvm
            assert jvm is not None
            jvm.System.gc()
        frame.createOrReplaceTempView(name)
        closing.callback(self._spark.catalog.dropTempView, name)
        return name, kept

    def _partitions(self, segment: Segment) -> int:
        """As many as processors, and more where a partitioned hash table must fit into memory in parts."""
        machine = self._model.machine
        if machine.memory_bytes is None:
            return machine.processors
        sizes = [self._model.table_bytes(mask_of_input(build)) for build in segment.builds]
        return max(1, math.ceil(max(sizes) / machine.memory_bytes)) * machine.processors

    def _description(self, segment: Segment) -> str:
        return f"{self._token} segment {self._numbers[segment]}"

    def _tell(self, event: SegmentEvent) -> None:
        if self._listener is not None:
            self._listener(event)

    def _table(self, source: str) -> str:
        return f"{self._token}_{list(self._sources).index(source)}"


def _reason(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage()).strip()
    return text.splitlines()[0] if text else type(error).__name__
