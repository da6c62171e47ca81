"""A testing kit: the real epoch engine without Spark.

`LocalCluster` runs the same orders, steps and commits as a Spark job does, one processor after the other in
this process. Tests use it to try histories (epoch sizes, limits, restarts, lost memory) by the thousand.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.manager import Spill, StagedEpoch, Swap, suspension
from spillway.model import group_set, to_text, union
from spillway.policy.placement import (
    ForcedSpill,
    PlacementPolicy,
    PlacementSnapshot,
    StayParameters,
    Suggestions,
)
from spillway.state.graph import (
    SCAN,
    Graph,
    Inbox,
    LevelMessage,
    Outgoing,
    Quota,
    Routing,
    StageStep,
    consistent_reports,
    fused_stages,
    placement_of,
    run_step,
)
from spillway.state.log import Manifest
from spillway.state.orders import NO_BOUND, Orders, Report
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN, TaskAttempt
from spillway.state.storage import Storage

PARCEL_BYTES = 4096
"""Small, so that tests have epochs with several parcels."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """Executes the epochs of one engine in this process."""

    graph: Graph
    batch: pa.RecordBatch | None = None
    """The input of the epoch, in wire format."""
    batch_rows: int | None = None
    """Cut the input into batches of this many rows, as Spark does; None: one batch."""
    lost_steps: int = 0
    """Steps of an attempt that is lost with its workers, before the attempt that counts."""

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        if not self.graph.is_one:
            for _ in zip(range(self.lost_steps), self._steps(orders, {}), strict=False):
                pass
            commits: dict[int, LevelMessage] = {}
            for _ in self._steps(orders, commits):
                pass
            return consistent_reports(self.graph, commits)
        (operator,) = self.graph.operators
        for part in orders[: self.lost_steps]:
            run_step(part, operator, _attempt(), self._batches(part))
        return [run_step(part, operator, _attempt(), self._batches(part)) for part in orders]

    def _steps(self, orders: Sequence[Orders], commits: dict[int, LevelMessage]) -> Iterator[None]:
        """All steps of an epoch of several stages; `commits` gets what each processor reports."""
        placement = placement_of(orders)
        routing = Routing(self.graph, placement, len(orders), fused_stages(self.graph, placement))
        quota = Quota(NO_BOUND, PARCEL_BYTES)
        boxes: dict[int, list[bytes]] = {target: [] for target in range(routing.targets)}
        scan = Outgoing(SCAN, 0, _attempt().id, quota, routing.operators_by_target, NO_BOUND)
        for part in orders:
            for batch in self._batches(part):
                for target, operator, rows, arrived in routing.split(batch):
                    scan.write(target, operator, rows, arrived)
        _deliver(boxes, scan.packed({}))
        last = len(routing.stages) - 1
        for stage in range(last + 1):
            for part in orders:
                attempt = _attempt()
                frames = boxes.pop(stage * len(orders) + part.processor)
                inbox = Inbox(iter(frames), len(frames), part.processor, NO_BOUND)
                targets = routing.targets_of(stage)
                outgoing = Outgoing(stage, part.processor, attempt.id, quota, targets, NO_BOUND)
                message = StageStep(routing, stage, part, attempt).run(inbox, outgoing)
                if stage == last:
                    commits[part.processor] = message
                else:
                    own = (stage + 1) * len(orders) + part.processor
                    _deliver(boxes, outgoing.packed({own: to_text(message)}))
                yield

    def _batches(self, orders: Orders) -> Iterator[pa.RecordBatch]:
        """The rows of a processor. As in Spark, a batch is allocated when it is asked for."""
        if self.batch is None:
            return iter(())
        hashes = self.batch.column(HASH_WIRE_COLUMN).to_numpy()
        groups = self.graph.group_numbers(self.batch.column(TAG_COLUMN).to_numpy(), hashes)
        mine = np.flatnonzero([orders.groups >> int(group) & 1 for group in groups])
        size = self.batch_rows or max(1, len(mine))
        return (self.batch.take(pa.array(mine[at : at + size])) for at in range(0, len(mine), size))


def _deliver(boxes: dict[int, list[bytes]], parcels: dict[int, list[bytes]]) -> None:
    for target, sent in parcels.items():
        boxes[target].extend(sent)


def _attempt() -> TaskAttempt:
    return TaskAttempt("localhost", "local", uuid.uuid4().hex[:8])


@dataclass(slots=True)
class ManualClock:
    """A clock for an engine, which stands still unless it is told to go on."""

    now: float = 0.0
    tick_seconds: float = 0.0
    """How far every look at it puts it forward."""

    def seconds(self) -> float:
        self.now += self.tick_seconds
        return self.now

    def wall(self) -> float:
        return self.now


class ListSink:
    """Keeps committed results as tables in this process; a repeated epoch is ignored."""

    def __init__(self, staging: str) -> None:
        self.staging: str | None = staging
        self.epochs: dict[int, list[pa.Table]] = {}

    def last_committed(self, query_id: str) -> int:  # noqa: ARG002 - one query
        return max(self.epochs, default=-1)

    def commit(self, epoch: StagedEpoch) -> None:
        if epoch.sequence in self.epochs or self.staging is None:
            return
        storage = Storage(self.staging)
        self.epochs[epoch.sequence] = [pq.read_table(storage.open_input(file.path)) for file in epoch.files]

    def rows(self) -> list[tuple[object, ...]]:
        tables = [table for epoch in self.epochs.values() for table in epoch]
        return [tuple(row.values()) for table in tables for row in table.to_pylist()]


class ScriptedSwaps:
    """Suspends and resumes scripted groups before each epoch."""

    def __init__(self, script: list[int], *, splittable: bool = True) -> None:
        self.script = script
        self.splittable = splittable

    def decide(
        self,
        manifest: Manifest,
        victims: list[Spill],
        resident: dict[int, int],  # noqa: ARG002 - the script does not depend on memory
        *,
        forced: bool,
        closing: object = (),  # noqa: ARG002
    ) -> tuple[list[Swap], list[Spill]]:
        swaps = [] if self.splittable else [suspension(victim) for victim in victims]
        spills = victims if self.splittable else []
        gone = manifest.suspended | manifest.mid_row_groups | union(victim.groups for victim in victims)
        if forced:
            back = manifest.suspended & manifest.waiting_groups
            return [*swaps, Swap(0, 0, back & -back, 1, 1, "forced")], spills
        chosen = self.script.pop() if self.script else 0
        there = group_set(g for g, state in manifest.groups.items() if state.rows)
        out, back = chosen & there & ~gone, chosen & manifest.suspended
        return [*swaps, *([Swap(0, out, back, 1, 1, "scripted")] if out or back else [])], spills

    def observe(self, epoch: int, swaps: object, seconds: object) -> None:
        """The script does not depend on what happens."""

    def is_behind(self, manifest: Manifest) -> bool:  # noqa: ARG002
        return False


def scripted_pushes(script: list[int]) -> PlacementPolicy:
    """A policy that pushes scripted groups out of memory before each epoch, as `active-disk` does."""

    def push(snapshot: PlacementSnapshot, _: object) -> Suggestions:
        chosen = script.pop() if script else 0
        spills = []
        for processor in snapshot.processors:
            groups = [g for g in snapshot.groups_of(processor.processor) if g.resident_bytes and g.movable]
            pushed = group_set(group.group for group in groups) & chosen
            if pushed:
                spills.append(ForcedSpill(processor.processor, pushed, 1, "pushed"))
        return Suggestions(spills=tuple(spills))

    return PlacementPolicy("scripted", StayParameters(), push)


class ScriptedSpills:
    """Ends the generations of scripted groups before each epoch, whatever the memory."""

    def __init__(self, script: list[int]) -> None:
        self.script = script

    def decide(
        self,
        manifest: Manifest,
        resident_bytes: dict[int, int],  # noqa: ARG002 - the script does not depend on memory
        last_resort: int = 0,  # noqa: ARG002
        relieved: frozenset[int] = frozenset(),  # noqa: ARG002
        pinned: int = 0,
        growth: Mapping[int, int] = MappingProxyType({}),  # noqa: ARG002
    ) -> list[Spill]:
        chosen = self.script.pop() if self.script else 0
        groups = [g for g, state in manifest.groups.items() if state.rows]
        pinned |= manifest.mid_row_groups | manifest.suspended
        mask = group_set(g for g in groups if chosen >> g & 1) & ~pinned
        return [Spill(0, mask, 1, 1, "scripted")] if mask else []

    def observe(self, group_results: dict[int, int], begun: int = 0, ended: int = 0) -> None:
        """The script does not depend on what happens."""
