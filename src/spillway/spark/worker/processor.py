"""The Python tasks of an epoch: `ScatterTask` reads rows and sends them to processors, `StageTask` is one
processor's part of one stage.

Tasks get frames (bytes) and give frames. What differs from epoch to epoch is in the frames, so Spark is told
of a task once. Tasks hold no state of their own: any Python worker of a host can serve any processor.
"""

import gc
import os
import pickle
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol

import pandas  # noqa: F401 - Arrow imports it with the first array: half a second inside some step
import pyarrow as pa

from spillway.errors import StateError
from spillway.model import to_text
from spillway.state.graph import SCAN, Inbox, Outgoing, OverflowedEpochError, Quota, Routing, StageStep
from spillway.state.memory import TierDirectory, holding_tier
from spillway.state.orders import NO_BOUND, Orders
from spillway.state.step import TaskAttempt
from spillway.state.storage import Storage

OVERFLOWED = b"overflowed"
"""The answer of a processor that was sent less than there is."""
SPOOL_BYTES = 64 << 20
"""Rows that wait in a task take this much memory at most, if the processor has no budget."""


class RowReader(Protocol):
    """Makes wire rows from frames; pickled to workers."""

    def __call__(self, frames: Iterator[bytes], batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """In batches of about this size, or smaller."""


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Wire rows that Spark has read: each frame is an Arrow record batch."""

    schema: bytes

    def __call__(self, frames: Iterator[bytes], batch_bytes: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """As Spark has cut them."""
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        for frame in frames:
            yield pa.ipc.read_record_batch(pa.py_buffer(frame), schema)


@dataclass(frozen=True, slots=True)
class ScatterTask:
    """Reads rows and sends each to the processor of its group."""

    routing: Routing
    reader: RowReader
    quota: Quota
    first_writer: int = 0
    """The number of the task with partition 0; other sources of the same epoch have the tasks before."""

    def __call__(self, partition: int, frames: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
        _keep_modules()
        writer = self.first_writer + partition
        targets = self.routing.operators_by_target
        outgoing = Outgoing(SCAN, writer, uuid.uuid4().hex[:12], self.quota, targets, NO_BOUND)
        for batch in self.reader(frames, self.quota.parcel_bytes):
            for target, operator, rows, arrived in self.routing.split(batch):
                outgoing.write(target, operator, rows, arrived)
            yield from outgoing.sealed()
            del batch
        for _ in frames:  # Spark reuses only a worker that has read its input to the end
            pass
        yield from outgoing.rest({})


@dataclass(frozen=True, slots=True)
class StageOrders:
    """What a processor is told for one stage."""

    orders: Orders
    parcels: int
    """How many it is sent."""
    quota: Quota
    """For what it sends itself."""


@dataclass(frozen=True, slots=True)
class StageTask:
    """One processor's part of one stage; its partition is the number of the processor."""

    routing: Routing
    stage: int

    def __call__(self, partition: int, frames: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
        """Parcels to later stages, by target; from the last stage, what the processor has to report."""
        told: StageOrders = pickle.loads(next(frames))  # noqa: S301 - from the driver of this job
        orders, routing = told.orders, self.routing
        assert orders.processor == partition
        attempt = _here(orders)
        spool_bytes = min(SPOOL_BYTES, orders.limits.round_bytes)
        inbox = Inbox(frames, told.parcels, partition, spool_bytes)
        targets = routing.targets_of(self.stage)
        outgoing = Outgoing(self.stage, partition, attempt.id, told.quota, targets, spool_bytes)
        try:
            with holding_tier(orders.tier, orders.sequence):
                message = to_text(StageStep(routing, self.stage, orders, attempt).run(inbox, outgoing))
        except OverflowedEpochError:
            inbox.skip()
            outgoing.overflow()
            message = ""
        if not targets:
            yield partition, message.encode() or OVERFLOWED
            return
        own = (self.stage + 1) * routing.processors + partition
        yield from outgoing.rest({own: message})


@dataclass(frozen=True, slots=True)
class LastStageTask:
    """The same for the last stage, whose frames go to the driver."""

    task: StageTask

    def __call__(self, partition: int, frames: Iterator[bytes]) -> Iterator[bytes]:
        for _, frame in self.task(partition, frames):
            yield frame


@cache
def _keep_modules() -> None:
    """Once in each worker: exclude imported modules from garbage collection.

    PySpark collects garbage after each task; looking through the objects of all modules took 75 ms each time.
    """
    gc.freeze()


def _here(orders: Orders) -> TaskAttempt:
    _keep_modules()
    arrive(orders.state, tuple(filter(None, orders.staging.values())), orders.tier)
    return TaskAttempt(socket.gethostname(), executor_name(), uuid.uuid4().hex[:12])


@lru_cache(maxsize=64)
def arrive(state: str, staging: tuple[str, ...], tier: str) -> None:
    """Once in each worker: an executor that registered after the start was not asked by `host_check`.

    It must see the driver's fencing token, or it would begin a state of its own on a path that is not shared.
    """
    query, token = Path(tier).parent.parent, Path(tier).parent.name
    seen = [(state, f"owners/{token}.json")]
    seen += [(directory, "") for directory in staging if Storage(directory).is_local]
    for root, name in seen:
        if not Storage(root).exists(name):
            raise StateError(
                f"host {socket.gethostname()} does not see what the driver wrote to {root}: all hosts must "
                "share it; use a directory that is mounted on every host, or an object store"
            )
    TierDirectory(str(query), in_memory=True).join(int(executor_name()))


def executor_name() -> str:
    """The executor that this task runs in: its JVM's process id (a worker is forked by a daemon of it)."""
    daemon = os.getppid()
    try:
        fields = Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return str(daemon)
    return fields[1]
