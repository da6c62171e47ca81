"""Jobs over frames with public names of PySpark only: the fallback of `frame_jobs`.

Known limits: tasks run wherever Spark puts them, so state may have to be read again from disk; frames are
pickled once more on their way; nothing starts ahead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import RDD, SparkContext
from pyspark.sql import DataFrame

from spillway.spark.jvm.frame_jobs import Addressed, Frames, FrameTask


class PublicFrameJobs:
    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def placed(self, partitions: Sequence[Sequence[bytes]], places: Sequence[str | None]) -> Frames:  # noqa: ARG002
        listed = self._context.parallelize([list(frames) for frames in partitions], len(partitions))
        return Frames(listed.flatMap(_itself), len(partitions))

    def arrow(self, frame: DataFrame) -> Frames:
        encoded = frame.mapInArrow(_as_bytes, "frame binary").rdd.map(_first)
        return Frames(encoded, encoded.getNumPartitions())

    def mapped(self, frames: Frames, task: FrameTask) -> Frames:
        return Frames(frames.rdd.mapPartitionsWithIndex(task), frames.partitions)

    def scattered(self, sources: Sequence[tuple[Frames, Addressed]], partitions: int) -> Frames:
        parts: list[RDD[Any]] = [frames.rdd.mapPartitionsWithIndex(task) for frames, task in sources]
        addressed = parts[0] if len(parts) == 1 else self._context.union(parts)
        return Frames(addressed.partitionBy(partitions, _itself), partitions)

    def slice(self, frames: Frames, start: int, stop: int) -> Frames:
        if (start, stop) == (0, frames.partitions):
            return Frames(frames.rdd.values(), frames.partitions)
        wanted = frames.rdd.filter(_Within(start, stop)).partitionBy(stop - start, _Less(start))
        return Frames(wanted.values(), stop - start)

    def zipped(self, first: Frames, *others: Frames) -> Frames:
        rdd = first.rdd.map(_listed)
        for frames in others:
            rdd = rdd.zip(frames.rdd).map(_joined)
        return Frames(rdd.flatMap(_itself), first.partitions)

    def begin(self, scattered: Frames) -> None:
        """There is no public way to compute one side of a shuffle ahead."""

    def collect(self, frames: Frames) -> list[bytes]:
        found: list[bytes] = frames.rdd.collect()
        return found


@dataclass(frozen=True, slots=True)
class _Within:
    start: int
    stop: int

    def __call__(self, addressed: tuple[int, bytes]) -> bool:
        return self.start <= addressed[0] < self.stop


@dataclass(frozen=True, slots=True)
class _Less:
    start: int

    def __call__(self, target: int) -> int:
        return target - self.start


def _itself(value: Any) -> Any:
    return value


def _first(row: Any) -> bytes:
    return bytes(row[0])


def _listed(frame: bytes) -> list[bytes]:
    return [frame]


def _joined(pair: tuple[list[bytes], bytes]) -> list[bytes]:
    return [*pair[0], pair[1]]


def _as_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        data = batch.serialize().to_pybytes()
        yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["frame"])
