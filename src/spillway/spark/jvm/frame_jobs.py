"""Spark jobs whose records are frames: bytes that Python tasks read and write as they are.

An epoch is such a job. Rows travel as Arrow bytes inside frames, so Spark plans and converts nothing. It
places tasks, moves frames through its shuffle, and runs again what was lost.

`inner_frame_jobs` uses inner names of PySpark: it saves Py4J calls and keeps each task at the place that is
wanted. `public_frame_jobs` does the same with public names only, slower and without places, for versions of
PySpark that lack one of the inner names.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

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
