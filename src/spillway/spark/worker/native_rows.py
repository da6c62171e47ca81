"""Wire rows of files that tasks read themselves; loaded only by tasks of such batches."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from spillway.scan import ScanInput, Split, read


@dataclass(frozen=True, slots=True)
class NativeRows:
    """Each frame is a list of splits."""

    inputs: tuple[ScanInput | None, ...]
    """By tag; None: Spark reads it."""

    def __call__(self, frames: Iterator[bytes], batch_bytes: int) -> Iterator[pa.RecordBatch]:
        for frame in frames:
            splits: list[Split] = pickle.loads(frame)  # noqa: S301 - from the driver of this job
            for split in splits:
                scan = self.inputs[split.tag]
                assert scan is not None
                yield from read(scan, split, batch_bytes=batch_bytes)
