"""Jobs over frames in this process, without Spark, and with attempts that are lost on purpose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spillway.spark.jvm.frame_jobs import Addressed, Frames, FrameTask

Parts = list[list[bytes]]
"""The frames of each partition."""


@dataclass
class LocalFrameJobs:
    """`rdd` of frames is a function from the number of the reader's partition to the partition's frames."""

    torn: list[int] = field(default_factory=list)
    """For each job, from the last to the first: the partition that reads a second attempt of all it is sent;
    -1: none does."""
    jobs: int = 0

    def placed(self, partitions: Sequence[Sequence[bytes]], places: Sequence[str | None]) -> Frames:
        held = [list(frames) for frames in partitions]
        assert len(held) == len(places)
        return Frames(lambda partition: held[partition], len(held))

    def arrow(self, frame: Any) -> Frames:
        raise AssertionError("there is no Spark")

    def mapped(self, frames: Frames, task: FrameTask) -> Frames:
        return Frames(lambda partition: list(task(partition, iter(frames.rdd(partition)))), frames.partitions)

    def scattered(self, sources: Sequence[tuple[Frames, Addressed]], partitions: int) -> Frames:
        def run() -> Parts:
            sent: Parts = [[] for _ in range(partitions)]
            for frames, task in sources:
                for partition in range(frames.partitions):
                    for target, data in task(partition, iter(frames.rdd(partition))):
                        sent[target].append(data)
            return sent

        attempts = [run()]
        chosen = self.torn[-1] if self.torn else -1

        def read(partition: int) -> list[bytes]:
            if partition == chosen:
                attempts.append(run())
            return attempts[-1 if partition == chosen else 0][partition]

        return Frames(read, partitions)

    def slice(self, frames: Frames, start: int, stop: int) -> Frames:
        read: Callable[[int], list[bytes]] = frames.rdd
        return Frames(lambda partition: read(start + partition), stop - start)

    def zipped(self, first: Frames, *others: Frames) -> Frames:
        sides = (first, *others)

        def read(partition: int) -> list[bytes]:
            found = [side.rdd(partition) for side in sides]
            assert len({len(frames) for frames in found}) == 1, [len(frames) for frames in found]
            return [frame for frames in zip(*found, strict=True) for frame in frames]

        return Frames(read, first.partitions)

    def begin(self, scattered: Frames) -> None:
        """Nothing is done before it is asked for."""

    def collect(self, frames: Frames) -> list[bytes]:
        self.jobs += 1
        found = [data for partition in range(frames.partitions) for data in frames.rdd(partition)]
        if self.torn:
            self.torn.pop()
        return found
