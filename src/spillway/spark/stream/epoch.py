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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spillway.errors import SessionError
from spillway.spark.jvm import FrameJobs, Frames
from spillway.spark.stream.batch_rows import BatchRows
from spillway.spark.stream.epoch_shape import EpochShape
from spillway.spark.stream.places import Places
from spillway.spark.stream.scan import Scan, ScanAhead, scan_rows
from spillway.spark.worker import OVERFLOWED, LastStageTask, StageOrders, StageTask
from spillway.state.graph import (
    Graph,
    LevelMessage,
    OverflowedEpochError,
    Routing,
    TornEpochError,
    consistent_reports,
    fused_stages,
    placement_of,
)
from spillway.state.orders import Limits, Orders, Report

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
class SparkEpoch:
    """Executes epochs of one query; `batch` is the rows of the epoch, None if there are none."""

    jobs: FrameJobs
    graph: Graph
    places: Places
    quotas: Quotas
    ahead: ScanAhead
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
                        f"epoch {sequence} failed {ATTEMPTS} times: {error}; nothing of it counts; find out "
                        "what ends executors (memory, for example) in Spark's log, then run the job again"
                    ) from error
                _LOG.warning("epoch %d is run again: %s", sequence, error)

    def _attempt(self, orders: Sequence[Orders]) -> list[Report]:
        shape = self._shape(orders)
        job = self.job(orders, shape)
        self.ahead.running(shape)
        answers = self.jobs.collect(job)
        if OVERFLOWED in answers:
            raise OverflowedEpochError
        messages = [LevelMessage.read(answer.decode()) for answer in answers]
        return consistent_reports(self.graph, dict(enumerate(messages)))

    def _shape(self, orders: Sequence[Orders]) -> EpochShape:
        placement = placement_of(orders)
        routing = Routing(self.graph, placement, len(orders), fused_stages(self.graph, placement))
        size = parcel_bytes(part.limits for part in orders)
        return EpochShape(routing, size, self.quotas.scan, self.quotas.stage)

    def job(self, orders: Sequence[Orders], shape: EpochShape) -> Frames:
        """The epoch as a job: what each processor reports."""
        scan = None if self.batch is None else self.ahead.take(self.batch, shape)
        if scan is None:
            scan = scan_rows(self.jobs, self.batch, shape)
        places = self.places.of(len(orders))
        sent: dict[int, Frames] = {}
        last = len(shape.routing.stages) - 1
        for stage in range(last):
            given = self._given(stage, orders, shape, scan, sent, places)
            task = StageTask(shape.routing, stage)
            sent[stage] = self.jobs.scattered([(given, task)], shape.routing.targets)
        given = self._given(last, orders, shape, scan, sent, places)
        return self.jobs.mapped(given, LastStageTask(StageTask(shape.routing, last)))

    def _given(
        self,
        stage: int,
        orders: Sequence[Orders],
        shape: EpochShape,
        scan: Scan,
        sent: dict[int, Frames],
        places: Sequence[str | None],
    ) -> Frames:
        """What the tasks of a stage get: orders, rows of the batch, parcels of earlier stages."""
        senders, targets = shape.senders(stage), shape.targets(stage)
        count = shape.frames(stage, scan.tasks, scan.most_shipped)
        quota = shape.stage_quota(stage, scan.tasks, scan.most_shipped)
        parcels = scan.tasks * shape.scan_parcels + len(senders) * len(orders) * shape.stage_parcels
        told = []
        for target, own in zip(targets, orders, strict=True):
            shipped = scan.shipped.get(target, [])
            frames = [pickle.dumps(StageOrders(own, parcels + len(shipped), quota)), *shipped]
            told.append([*frames, *([b""] * (count - len(frames)))])
        sides = [] if scan.frames is None else [scan.frames]
        sides += [sent[earlier] for earlier in senders]
        parts = [self.jobs.slice(side, targets.start, targets.stop) for side in sides]
        return self.jobs.zipped(self.jobs.placed(told, places), *parts)


def parcel_bytes(limits: Iterable[Limits]) -> int:
    """What a parcel may take: a round of the processor with the least memory, if any is bounded."""
    return min(MAX_PARCEL_BYTES, *(limit.round_bytes for limit in limits))
