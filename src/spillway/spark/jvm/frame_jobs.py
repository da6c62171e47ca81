"""Spark jobs whose records are frames: bytes that Python tasks read and write as they are.

An epoch is such a job. Rows travel as Arrow bytes inside frames, so Spark plans and converts nothing. It
places tasks, moves frames through its shuffle, and runs again what was lost.

This module alone uses inner names of PySpark. `InnerFrameJobs` saves Py4J calls and keeps each task at the
place that is wanted; `public_frame_jobs.PublicFrameJobs` does the same with public names only, slower and
without places, for versions of PySpark that lack one of the inner names.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from py4j.java_collections import ListConverter, MapConverter
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer, pack_long
from pyspark.sql import DataFrame
from pyspark.util import _load_from_socket

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

FrameTask = Callable[[int, Iterator[bytes]], Iterable[bytes]]
"""Runs in a Python worker: the number of its partition and its frames in, frames out."""
Addressed = Callable[[int, Iterator[bytes]], Iterable[tuple[int, bytes]]]
"""The same; each frame goes out with the number of the partition that it is for."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames by partition, which are computed when a job needs them; `rdd` is Spark's name for them."""

    rdd: Any
    partitions: int


class FrameJobs(Protocol):
    def placed(self, partitions: Sequence[Sequence[bytes]], places: Sequence[str | None]) -> Frames:
        """Frames of the driver; the task that reads a partition runs at its place, if it has one."""

    def arrow(self, frame: DataFrame) -> Frames:
        """The rows of a DataFrame as Arrow record batches, each a frame."""

    def mapped(self, frames: Frames, task: FrameTask) -> Frames: ...

    def scattered(self, sources: Sequence[tuple[Frames, Addressed]], partitions: int) -> Frames:
        """What tasks over all sources send to each of so many partitions, through Spark's shuffle."""

    def slice(self, frames: Frames, start: int, stop: int) -> Frames:
        """Some partitions of scattered frames."""

    def zipped(self, first: Frames, *others: Frames) -> Frames:
        """All frames of each partition: one of the first, one of each of the others, and so on.

        Each partition must have the same number of frames in all of them.
        """

    def begin(self, scattered: Frames) -> None:
        """Start to compute scattered frames, beside whatever else runs; a job that needs them finds them."""

    def collect(self, frames: Frames) -> list[bytes]: ...


class InnerFrameJobs:
    def __init__(self, context: SparkContext) -> None:
        jvm, gateway = context._jvm, context._gateway
        assert jvm is not None and gateway is not None
        client = gateway._gateway_client
        self._context = context
        self._jvm = jvm
        self._scala = context._jsc.sc()
        self._sequence: Callable[..., JavaObject] = jvm.PythonUtils.toSeq
        self._environment = MapConverter().convert(context.environment, client)
        self._includes = ListConverter().convert(context._python_includes, client)
        self._nothing = ListConverter().convert([], client)
        self._pair = jvm.scala.Tuple2
        self._partition_class = jvm.PythonRDD
        self._serde = jvm.SerDeUtil
        self._any = jvm.scala.reflect.ClassTag.AnyRef()
        self._functions: dict[bytes, JavaObject] = {}

    def placed(self, partitions: Sequence[Sequence[bytes]], places: Sequence[str | None]) -> Frames:
        pairs = [
            self._pair(
                bytearray(pickle.dumps(list(frames), 2)), self._sequence([] if place is None else [place])
            )
            for frames, place in zip(partitions, places, strict=True)
        ]
        rdd = self._scala.makeRDD(self._sequence(pairs), self._any).toJavaRDD()
        return Frames(self._serde.pythonToJava(rdd, True), len(pairs))

    def arrow(self, frame: DataFrame) -> Frames:
        rdd = frame._jdf.toArrowBatchRdd().toJavaRDD()
        return Frames(rdd, rdd.getNumPartitions())

    def mapped(self, frames: Frames, task: FrameTask) -> Frames:
        return Frames(self._python(frames, task), frames.partitions)

    def scattered(self, sources: Sequence[tuple[Frames, Addressed]], partitions: int) -> Frames:
        pairs = None
        for frames, task in sources:
            sent = self._jvm.PairwiseRDD(self._python(frames, _Flat(task)).rdd()).asJavaPairRDD()
            pairs = sent if pairs is None else pairs.union(sent)
        assert pairs is not None
        return Frames(pairs.partitionBy(self._jvm.PythonPartitioner(partitions, 0)), partitions)

    def slice(self, frames: Frames, start: int, stop: int) -> Frames:
        values = self._jvm.PythonRDD.valueOfPair(frames.rdd)
        if (start, stop) == (0, frames.partitions):
            return Frames(values, frames.partitions)
        # A Scala set is a function from its elements to true, and it can be sent to executors.
        wanted = self._sequence(list(range(start, stop))).toSet()
        pruned = self._jvm.org.apache.spark.rdd.PartitionPruningRDD.create(values.rdd(), wanted)
        return Frames(pruned.toJavaRDD(), stop - start)

    def zipped(self, first: Frames, *others: Frames) -> Frames:
        rdd = first.rdd
        for frames in others:
            rdd = rdd.zip(frames.rdd)
        return Frames(rdd, first.partitions)

    def begin(self, scattered: Frames) -> None:
        self._scala.submitMapStage(scattered.rdd.rdd().dependencies().head())

    def collect(self, frames: Frames) -> list[bytes]:
        served = self._jvm.PythonRDD.collectAndServe(frames.rdd.rdd())
        with _load_from_socket(served, NoOpSerializer()) as stream:
            return list(stream)

    def _python(self, frames: Frames, task: FrameTask) -> "JavaObject":
        python = self._jvm.PythonRDD(frames.rdd.rdd(), self._function(task), False, False)
        return python.asJavaRDD()

    def _function(self, task: FrameTask) -> "JavaObject":
        """The task as the JVM keeps it; one that was seen before is not told again."""
        noop = NoOpSerializer()
        command = CloudPickleSerializer().dumps((task, None, noop, noop))  # type: ignore[no-untyped-call]
        if command not in self._functions:
            if len(self._functions) >= MOST_FUNCTIONS:
                self._functions.clear()
            self._functions[command] = self._jvm.SimplePythonFunction(
                bytearray(command),
                self._environment,
                self._includes,
                self._context.pythonExec,
                self._context.pythonVer,
                self._nothing,
                self._context._javaAccumulator,
            )
        return self._functions[command]


MOST_FUNCTIONS = 64


@dataclass(frozen=True, slots=True)
class _Flat:
    """Addressed frames as the JVM reads them: the number of a partition, then its frame."""

    task: Addressed

    def __call__(self, partition: int, frames: Iterator[bytes]) -> Iterator[bytes]:
        for target, frame in self.task(partition, frames):
            yield pack_long(target)  # type: ignore[no-untyped-call]
            yield frame
