"""One epoch as one Spark job: scan tasks send rows to processors, each processor runs its part of each stage,
the driver collects what they report.

        rows of the batch -> scatter tasks -\\ shuffle
                             orders --------- zip -> stage 0 -\\ shuffle
                                                  orders ------ zip -> stage 1 ... -> reports

Orders are placed where the processor's state is, and so is the task that reads them with the shuffled rows. A
lost task is run again by Spark. If tasks of one epoch read different attempts of another task, or had more to
send than their quota, the epoch is run again: nothing of it counts before all reports are here.
"""

import logging
import pickle
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spillway.errors import SessionError
from spillway.spark.jvm import FrameJobs, Frames
from spillway.spark.stream.batch_rows import BatchRows
from spillway.spark.stream.places import Places
from spillway.spark.worker import OVERFLOWED, LastStageTask, ScatterTask, StageOrders, StageTask
from spillway.state.graph import (
    SCAN,
    Graph,
    LevelMessage,
    Outgoing,
    OverflowedEpochError,
    Quota,
    Routing,
    TornEpochError,
    consistent_reports,
    fused_stages,
    placement_of,
)
from spillway.state.orders import NO_BOUND, Limits, Orders, Report

_LOG = logging.getLogger(__name__)
MAX_PARCEL_BYTES = 32 << 20
ATTEMPTS = 4
"""How often an epoch is run at most because it was torn; Spark's own default for a task."""
LEAST_PARCELS = 4
"""Which a task sends to each target, one of them for each operator there."""


@dataclass(slots=True)
class Quotas:
    """How many parcels tasks send; learned, because nobody knows before how much they have to send."""

    scan: int = LEAST_PARCELS
    stage: int = LEAST_PARCELS

    def grow(self) -> None:
        self.scan *= 4
        self.stage *= 4


@dataclass(frozen=True, slots=True)
class _Scan:
    """The rows of the batch: scattered by tasks, or here, with the orders."""

    frames: Frames | None = None
    tasks: int = 0
    shipped: dict[int, list[bytes]] = field(default_factory=dict)

    def shipped_to(self, target: int) -> list[bytes]:
        return self.shipped.get(target, [])


@dataclass(frozen=True, slots=True)
class SparkEpoch:
    """Executes epochs of one query; `batch` is the rows of the epoch, None if there are none."""

    jobs: FrameJobs
    graph: Graph
    places: Places
    quotas: Quotas
    batch: BatchRows | None = None

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        sequence, torn = orders[0].sequence, 0
        while True:
            try:
                return self._attempt(orders)
            except OverflowedEpochError:
                self.quotas.grow()
            except TornEpochError as error:
                torn += 1
                if torn >= ATTEMPTS:
                    raise SessionError(
                        f"epoch {sequence} failed {ATTEMPTS} times: {error}; nothing of it is committed; find "
                        "out what ends executors (memory, for example) in Spark's log, then run the job again"
                    ) from error
                _LOG.warning("epoch %d is run again: %s", sequence, error)

    def _attempt(self, orders: Sequence[Orders]) -> list[Report]:
        answers = self.jobs.collect(self.job(orders))
        if OVERFLOWED in answers:
            raise OverflowedEpochError
        messages = [LevelMessage.read(answer.decode()) for answer in answers]
        return consistent_reports(self.graph, dict(enumerate(messages)))

    def job(self, orders: Sequence[Orders]) -> Frames:
        """The epoch as a job: what each processor reports."""
        placement = placement_of(orders)
        routing = Routing(self.graph, placement, len(orders), fused_stages(self.graph, placement))
        size = parcel_bytes(part.limits for part in orders)
        return _Job(self, routing, orders, size).frames()


@dataclass(frozen=True, slots=True)
class _Job:
    """One attempt at an epoch."""

    epoch: SparkEpoch
    routing: Routing
    orders: Sequence[Orders]
    parcel_bytes: int

    def frames(self) -> Frames:
        scan = self._scan()
        places = self.epoch.places.of(len(self.orders))
        sent: dict[int, Frames] = {}
        last = len(self.routing.stages) - 1
        for stage in range(last + 1):
            task = StageTask(self.routing, stage)
            given = self._given(stage, scan, sent, places)
            if stage == last:
                return self.epoch.jobs.mapped(given, LastStageTask(task))
            sent[stage] = self.epoch.jobs.scattered([(given, task)], self.routing.targets)
        raise AssertionError("a graph has a stage")

    def _given(
        self, stage: int, scan: _Scan, sent: dict[int, Frames], places: Sequence[str | None]
    ) -> Frames:
        """What the tasks of a stage get: orders, rows of the batch, parcels of earlier stages."""
        jobs, processors = self.epoch.jobs, self.routing.processors
        first, end = stage * processors, (stage + 1) * processors
        senders = [earlier for earlier in sent if stage in self.routing.feeds(earlier)]
        count = self._frame_count(stage, scan, len(senders))
        scan_parcels = scan.tasks * self.epoch.quotas.scan
        told = []
        for processor, orders in enumerate(self.orders):
            shipped = scan.shipped_to(first + processor)
            parcels = scan_parcels + len(shipped) + len(senders) * processors * self.epoch.quotas.stage
            head = StageOrders(orders, parcels, self._stage_quota(stage, scan))
            frames = [pickle.dumps(head), *shipped]
            told.append([*frames, *([b""] * (count - len(frames)))])
        parts = [] if scan.frames is None else [jobs.slice(scan.frames, first, end)]
        parts += [jobs.slice(sent[earlier], first, end) for earlier in senders]
        return jobs.zipped(jobs.placed(told, places), *parts)

    def _frame_count(self, stage: int, scan: _Scan, senders: int) -> int:
        """How many frames every partition of a stage gets from each side, padding included."""
        shipped = max(
            len(scan.shipped_to(stage * self.routing.processors + processor))
            for processor in range(self.routing.processors)
        )
        quotas = self.epoch.quotas
        sent = self.routing.processors * quotas.stage if senders else 0
        return max(1 + shipped, scan.tasks * quotas.scan, sent)

    def _stage_quota(self, stage: int, scan: _Scan) -> Quota:
        quotas, processors = self.epoch.quotas, self.routing.processors
        padding: dict[int, int] = {}
        for later in self.routing.feeds(stage):
            missing = self._frame_count(later, scan, 1) - processors * quotas.stage
            padding |= {later * processors + processor: missing for processor in range(processors)}
        return Quota(quotas.stage, self.parcel_bytes, padding)

    def _scan(self) -> _Scan:
        batch, routing, quotas = self.epoch.batch, self.routing, self.epoch.quotas
        if batch is None:
            return _Scan()
        few = batch.few()
        if few is not None:
            quota = Quota(NO_BOUND, self.parcel_bytes)
            outgoing = Outgoing(SCAN, 0, uuid.uuid4().hex[:12], quota, routing.operators_by_target, NO_BOUND)
            for rows in few:
                for target, operator, piece, arrived in routing.split(rows):
                    outgoing.write(target, operator, piece, arrived)
            return _Scan(shipped=outgoing.packed({}))
        sources = batch.sources(self.epoch.jobs)
        tasks = sum(frames.partitions for frames, _ in sources)
        if not tasks:
            return _Scan()
        counted = _Scan(tasks=tasks)
        processors = routing.processors
        padding: dict[int, int] = {}
        for stage in range(len(routing.stages)):
            missing = self._frame_count(stage, counted, stage) - tasks * quotas.scan
            padding |= {stage * processors + processor: missing for processor in range(processors)}
        quota = Quota(quotas.scan, self.parcel_bytes, padding)
        first, scatter = 0, []
        for frames, reader in sources:
            scatter.append((frames, ScatterTask(routing, reader, quota, first)))
            first += frames.partitions
        return _Scan(self.epoch.jobs.scattered(scatter, routing.targets), tasks)


def parcel_bytes(limits: Iterable[Limits]) -> int:
    """What a parcel may take: a round of the processor with the least memory, if any is bounded."""
    return min(MAX_PARCEL_BYTES, *(limit.round_bytes for limit in limits))
