"""The rows of a batch on their way to the processors: scattered by tasks, or by the driver if they are few.

While an epoch runs, the rows of the next batch can be scattered already (`ScanAhead`); its own job then finds
them in Spark's shuffle files. They are scattered for the placement of the running epoch. If groups move in
between, they are scattered again.
"""

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spillway.spark.jvm import FrameJobs, Frames
from spillway.spark.stream.batch_rows import BatchRows
from spillway.spark.stream.epoch_shape import EpochShape
from spillway.spark.worker import ScatterTask
from spillway.state.graph import SCAN, Outgoing, Quota
from spillway.state.orders import NO_BOUND

_LOG = logging.getLogger(__name__)
MOST_SHIPPED_BYTES = 32 << 20
"""Rows that the driver sends with its orders."""
BEGIN_SECONDS = 0.02
"""How long the scan of the next batch waits for the job of the running epoch to be first in Spark's queue."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows by target: in a shuffle of so many tasks, or in parcels that the driver ships with its orders."""

    frames: Frames | None = None
    tasks: int = 0
    shipped: dict[int, list[bytes]] = field(default_factory=dict)

    @property
    def most_shipped(self) -> int:
        """To one target."""
        return max(map(len, self.shipped.values()), default=0)


def scan_rows(jobs: FrameJobs, rows: BatchRows | None, shape: EpochShape) -> Scan:
    if rows is None:
        return Scan()
    routing = shape.routing
    few = rows.few()
    shipped = None if few is None else _shipped(few, shape)
    if shipped is not None:
        return Scan(shipped=shipped)
    sources = [(frames, reader) for frames, reader in rows.sources(jobs) if frames.partitions]
    tasks = sum(frames.partitions for frames, _ in sources)
    if not tasks:
        return Scan()
    quota, first, scatter = shape.scan_quota(tasks), 0, []
    for frames, reader in sources:
        scatter.append((frames, ScatterTask(routing, reader, quota, first)))
        first += frames.partitions
    return Scan(jobs.scattered(scatter, routing.targets), tasks)


def _shipped(few: Iterator[pa.RecordBatch], shape: EpochShape) -> dict[int, list[bytes]] | None:
    """The rows in parcels; None if they are larger than they seemed (text that was written once)."""
    routing, size = shape.routing, 0
    quota = Quota(NO_BOUND, shape.parcel_bytes)
    outgoing = Outgoing(SCAN, 0, uuid.uuid4().hex[:12], quota, routing.operators_by_target, NO_BOUND)
    for batch in few:
        size += batch.nbytes
        if size > MOST_SHIPPED_BYTES:
            return None
        for target, operator, piece, arrived in routing.split(batch):
            outgoing.write(target, operator, piece, arrived)
    return outgoing.packed({})


class ScanAhead:
    """Scatters the rows of the next batch beside the running epoch."""

    def __init__(self, jobs: FrameJobs) -> None:
        self._jobs = jobs
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spillway-scan")
        self._lock = threading.Lock()
        self._next: BatchRows | None = None
        self._shape: EpochShape | None = None
        self._begun: tuple[BatchRows, EpochShape, Future[Scan | None]] | None = None

    def offer(self, rows: BatchRows) -> None:
        """These are the rows of the next batch."""
        with self._lock:
            self._next = rows
            self._begin()

    def running(self, shape: EpochShape) -> None:
        """An epoch of this shape is about to run."""
        with self._lock:
            self._shape = shape
            self._begin()

    def take(self, rows: BatchRows, shape: EpochShape) -> Scan | None:
        """The rows of a batch, if they were scattered for this shape."""
        with self._lock:
            begun = self._begun
            if begun is not None and begun[0] is rows:
                self._begun = None
            if self._next is rows:
                self._next = None
            self._shape = None
        if begun is None or begun[0] is not rows or begun[1].key != shape.key:
            return None
        return begun[2].result()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        if self._next is not None and self._shape is not None and self._begun is None:
            rows, shape, self._next, self._shape = self._next, self._shape, None, None
            self._begun = rows, shape, self._thread.submit(self._scattered, rows, shape)

    def _scattered(self, rows: BatchRows, shape: EpochShape) -> Scan | None:
        """None if the rows are few, or cannot be read: then the epoch itself says why."""
        time.sleep(BEGIN_SECONDS)
        try:
            scan = scan_rows(self._jobs, rows, shape)
            if scan.frames is None:
                return None
            self._jobs.begin(scan.frames)
        except (PySparkException, Py4JError) as error:
            _LOG.warning("the next batch is not read ahead: %s", str(error).splitlines()[0])
            return None
        return scan
