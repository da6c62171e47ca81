"""Jobs over frames with inner names of PySpark and Spark. No other module uses these.

Known limit: names are those of PySpark 4.1 to 4.3. If one of them is missing, `open_frame_jobs` takes the
public way.
"""

import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.java_collections import ListConverter, MapConverter
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer, pack_long
from pyspark.sql import DataFrame
from pyspark.util import _load_from_socket

from spillway.spark.jvm.frame_jobs import Addressed, FrameJobs, Frames, FrameTask
from spillway.spark.jvm.public_frame_jobs import PublicFrameJobs

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_LOG = logging.getLogger(__name__)
MOST_FUNCTIONS = 64
"""Tasks that the JVM keeps; there are a few for each placement of groups."""


def open_frame_jobs(context: SparkContext) -> FrameJobs:
    """The fast way if this Spark has all that it needs, else the public one."""
    try:
        return InnerFrameJobs(context)
    except (AttributeError, TypeError, Py4JError) as error:
        _LOG.warning("epochs take the slower, public way, because this Spark lacks: %s", error)
        return PublicFrameJobs(context)


class InnerFrameJobs:
    def __init__(self, context: SparkContext) -> None:
        jvm, gateway = context._jvm, context._gateway
        assert jvm is not None and gateway is not None
        client = gateway._gateway_client
        self._context = context
        self._client = client
        self._scala = context._jsc.sc()
        self._sequence: Callable[..., JavaObject] = jvm.PythonUtils.toSeq
        self._environment = MapConverter().convert(context.environment, client)
        self._includes = ListConverter().convert(context._python_includes, client)
        self._nothing = ListConverter().convert([], client)
        self._pair = _class(jvm.scala.Tuple2)
        self._python_rdd = _class(jvm.PythonRDD)
        self._pairwise_rdd = _class(jvm.PairwiseRDD)
        self._partitioner = _class(jvm.PythonPartitioner)
        self._pruning_rdd = _class(jvm.org.apache.spark.rdd.PartitionPruningRDD)
        self._simple_function = _class(jvm.SimplePythonFunction)
        self._serde = _class(jvm.SerDeUtil)
        self._any = jvm.scala.reflect.ClassTag.AnyRef()
        self._functions: dict[bytes, JavaObject] = {}

    def placed(self, partitions: Sequence[Sequence[bytes]], places: Sequence[str | None]) -> Frames:
        if not any(places):
            held = [bytearray(pickle.dumps(list(frames), 2)) for frames in partitions]
            rdd = self._context._jsc.parallelize(ListConverter().convert(held, self._client), len(held))
            return Frames(self._serde.pythonToJava(rdd, True), len(held))
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
            sent = self._pairwise_rdd(self._python(frames, _Flat(task)).rdd()).asJavaPairRDD()
            pairs = sent if pairs is None else pairs.union(sent)
        assert pairs is not None
        return Frames(pairs.partitionBy(self._partitioner(partitions, 0)), partitions)

    def slice(self, frames: Frames, start: int, stop: int) -> Frames:
        values = self._python_rdd.valueOfPair(frames.rdd)
        if (start, stop) == (0, frames.partitions):
            return Frames(values, frames.partitions)
        # A Scala set is a function from its elements to true, and it can be sent to executors.
        wanted = self._sequence(list(range(start, stop))).toSet()
        pruned = self._pruning_rdd.create(values.rdd(), wanted)
        return Frames(pruned.toJavaRDD(), stop - start)

    def zipped(self, first: Frames, *others: Frames) -> Frames:
        rdd = first.rdd
        for frames in others:
            rdd = rdd.zip(frames.rdd)
        return Frames(rdd, first.partitions)

    def begin(self, scattered: Frames) -> None:
        self._scala.submitMapStage(scattered.rdd.rdd().dependencies().head())

    def collect(self, frames: Frames) -> list[bytes]:
        served = self._python_rdd.collectAndServe(frames.rdd.rdd())
        with _load_from_socket(served, NoOpSerializer()) as stream:
            return list(stream)

    def _python(self, frames: Frames, task: FrameTask) -> "JavaObject":
        python = self._python_rdd(frames.rdd.rdd(), self._function(task), False, False)
        return python.asJavaRDD()

    def _function(self, task: FrameTask) -> "JavaObject":
        """The task as the JVM keeps it; one that was seen before is not told again."""
        noop = NoOpSerializer()
        command = CloudPickleSerializer().dumps((task, None, noop, noop))  # type: ignore[no-untyped-call]
        function = self._functions.get(command)
        if function is None:
            if len(self._functions) >= MOST_FUNCTIONS:
                self._functions.clear()
            function = self._functions[command] = self._simple_function(
                bytearray(command),
                self._environment,
                self._includes,
                self._context.pythonExec,
                self._context.pythonVer,
                self._nothing,
                self._context._javaAccumulator,
            )
        return function


@dataclass(frozen=True, slots=True)
class _Flat:
    """Addressed frames as the JVM reads them: the number of a partition, then its frame."""

    task: Addressed

    def __call__(self, partition: int, frames: Iterator[bytes]) -> Iterator[bytes]:
        for target, frame in self.task(partition, frames):
            yield pack_long(target)  # type: ignore[no-untyped-call]
            yield frame


def _class(found: object) -> "JavaObject":
    """A class of the JVM; Py4J takes a name that does not exist for a package."""
    if not isinstance(found, JavaClass):
        raise TypeError(str(found))
    return found
