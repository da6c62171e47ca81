"""One attempt of one processor's part of one epoch, as far as all operators share it.

Freeing, loading, expiring and merging state; runs, pending files and the report. What an operator makes of
its input is in a subclass: `step` for joins, `aggregate_step` for statistics.

Invariant: an attempt only creates files under names of its own and changes nothing that exists, so a step may
be run any number of times; only the attempt whose report is committed counts.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from spillway.model import GroupSet
from spillway.plan.expression import ColumnRef
from spillway.state.memory import MemoryTier, sibling_bytes
from spillway.state.orders import NO_BOUND, Orders, Report
from spillway.state.rows import (
    EventTimes,
    Expiry,
    Int64Array,
    PendingWriter,
    Position,
    Run,
    SortedRows,
    group_offsets,
    groups_in,
    in_order,
    merge,
    write_run,
)
from spillway.state.step.intake import Intake, SuspendedInput
from spillway.state.step.meter import Meter
from spillway.state.step.operator import Operator
from spillway.state.step.results import Outlet, ResultWriter, Writer
from spillway.state.step.tally import LineageCounter
from spillway.state.storage import Storage

MERGE_COPIES = 2.25
"""How often a merge has its output in memory: as a copy and as an image, and for nested values some more."""
OperatorT = TypeVar("OperatorT", bound=Operator)


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """One try of a task, and where it runs; `id` makes its file names its own."""

    host: str
    executor: str
    id: str


@dataclass(slots=True)
class Attempt(Generic[OperatorT]):
    orders: Orders
    operator: OperatorT
    attempt: TaskAttempt
    outlet: Outlet | None = None
    """Where results go that are not those of the view."""
    storage: Storage = field(init=False)
    tier: MemoryTier = field(init=False)
    writer: Writer = field(init=False)
    state: list[list[SortedRows]] = field(default_factory=list)
    """Old state per input, oldest segment first."""
    group_rows: Int64Array = field(init=False)
    group_bytes: np.typing.NDArray[np.float64] = field(init=False)
    expiry: Expiry = field(init=False)
    expired_rows: Int64Array = field(init=False)
    expired_bytes: np.typing.NDArray[np.float64] = field(init=False)
    added: list[Run] = field(default_factory=list)
    advanced: bool = False
    """Whether rows of the input were taken in."""
    replaced: list[tuple[str, GroupSet]] = field(default_factory=list)
    loaded_bytes: int = 0
    meter: Meter = field(init=False)
    others_bytes: int = 0
    """What other joins of the same tree have in memory on this processor."""
    seconds: dict[str, float] = field(default_factory=dict)
    kept_downstream: dict[int, Int64Array] = field(default_factory=dict)
    """Per join below, rows that became state here, by the group that they came through."""
    kept_counters: dict[int, LineageCounter] = field(default_factory=dict)
    kept_downstream_bytes: dict[int, np.typing.NDArray[np.float64]] = field(default_factory=dict)

    def _prepare(self) -> None:
        orders, operator = self.orders, self.operator
        self.storage = Storage(orders.state)
        self.tier = tier = MemoryTier(orders.tier, operator.groups)
        self.others_bytes = others = sibling_bytes(orders.tier) if orders.shared_tier else 0
        # Not a method of this attempt: a cycle would keep its images mapped until garbage is collected.
        self.meter = Meter(lambda: others + tier.resident_bytes())
        self.writer = self._results()
        self.kept_counters = self._lineage_counters()
        self.group_rows = np.zeros(operator.groups, dtype=np.int64)
        self.group_bytes = np.zeros(operator.groups, dtype=np.float64)
        self.expiry = Expiry(operator.windows, orders.watermark, orders.keep)
        self.expired_rows = np.zeros(operator.groups, dtype=np.int64)
        self.expired_bytes = np.zeros(operator.groups, dtype=np.float64)
        with Clock(self.seconds, "load"):
            self.tier.keep_only((*orders.runs, *orders.incoming))
            if orders.free or not orders.clean:
                self.tier.open()
        if orders.free:
            with Clock(self.seconds, "free"):
                self.tier.free(orders.free)

    def _results(self) -> Writer:
        orders, operator = self.orders, self.operator
        if self.outlet is not None:
            return self.outlet.writer(operator, self._name("out"))
        counters = self._lineage_counters()
        return ResultWriter(
            operator,
            orders.staging,
            self._name("parquet"),
            orders.result_compression,
            counters,
            orders.limits.chunk_bytes,
            self.meter.sample,
        )

    def _lineage_counters(self) -> dict[int, LineageCounter]:
        """One for each join below."""
        operator, one_in = self.operator, self.orders.limits.lineage_one_in
        sequence = self.orders.sequence
        return {join: LineageCounter(operator.groups, one_in, sequence) for join, _ in operator.lineage}

    def _changes(self, busy: float, files: tuple[tuple[str, int, int], ...], intake: Intake) -> Report:
        """The report of an epoch that took in input."""
        self._receive_groups()
        return replace(
            self._report(busy, files),
            added=tuple(self.added),
            replaced=tuple(self.replaced),
            input_rows=intake.input_rows,
            group_rows=nonzero(self.group_rows),
            group_bytes=nonzero(self.group_bytes.astype(np.int64)),
            latest=tuple(intake.latest),
            late_rows=intake.late_rows,
            null_time_rows=intake.null_time_rows,
            expired_rows=nonzero(self.expired_rows),
            expired_bytes=nonzero(self.expired_bytes.astype(np.int64)),
        )

    def _report(self, busy: float, files: tuple[tuple[str, int, int], ...]) -> Report:
        self._settle()
        resident = self.tier.resident_bytes() + self._open_bytes()
        return Report(
            lineage=self._lineage(),
            processor=self.orders.processor,
            host=self.attempt.host,
            executor=self.attempt.executor,
            added=(),
            replaced=(),
            pending=(),
            files=files,
            input_rows=0,
            probed_rows=0,
            results=self.writer.rows,
            resident_bytes=resident,
            loaded_bytes=self.loaded_bytes,
            busy_seconds=time.process_time() - busy,
            seconds=self.seconds,
            group_results=nonzero(self.writer.group_results),
            freed_bytes=self.tier.freed_bytes,
            peak_bytes=max(resident + self.others_bytes, self.meter.peak_bytes),
        )

    def _lineage(self) -> dict[int, tuple[int, int, int]]:
        """Per group of joins below: results that came through it, and rows and bytes held here."""
        found: dict[int, tuple[int, int, int]] = {}
        groups = self.operator.groups
        for join in sorted(set(self.writer.lineage_results) | set(self.kept_downstream)):
            none = np.zeros(groups, dtype=np.int64)
            results = self.writer.lineage_results.get(join, none)
            rows, sizes = self.kept_downstream.get(join, none), self.kept_downstream_bytes.get(join, none)
            for group in np.flatnonzero(results + rows):
                found[join * groups + int(group)] = (int(results[group]), int(rows[group]), int(sizes[group]))
        return found

    def _receive_groups(self) -> None:
        """Load what is about to move here; a part of it may be there already."""
        with Clock(self.seconds, "receive groups"):
            for run in self.orders.incoming:
                self.loaded_bytes += self.tier.load(self.storage, run, run.live)[1]
            self.meter.sample()

    def _settle(self) -> None:
        """Wait for what the step frees; the wait counts as freeing, not the work that went on beside."""
        with Clock(self.seconds, "free"):
            self.tier.settle()

    def _image_bytes(self) -> int:
        """The memory of all images of this processor."""
        return self.others_bytes + self.tier.resident_bytes()

    def _open(self) -> None:
        orders, operator = self.orders, self.operator
        with Clock(self.seconds, "load"):
            segments: dict[str, list[SortedRows]] = {}
            for run in orders.runs:
                segments[run.name], loaded = self.tier.load(self.storage, run, run.live)
                self.loaded_bytes += loaded
        with Clock(self.seconds, "merge"):
            self._expire(segments)
            runs = self._merge(segments)
        self.state = [
            [segment for run in runs if run.input == number for segment in segments[run.name]]
            for number in range(len(operator.inputs))
        ]

    def _expire(self, segments: dict[str, list[SortedRows]]) -> None:
        """Give up the runs that are too old as a whole."""
        for run in self.orders.runs:
            if run.name in self.orders.expired:
                for segment in segments.pop(run.name):
                    sizes = np.diff(group_offsets(segment.hashes, self.operator.groups))
                    live = sizes if segment.live is None else sizes * segment.live
                    self._note_expired(live, segment)
                self.replaced.append((run.name, run.live))
                self.tier.discard(run)

    def _note_expired(self, rows: Int64Array, of: SortedRows) -> None:
        self.expired_rows += rows
        self.expired_bytes += rows * (of.nbytes / max(1, of.rows))

    def _merge(self, segments: dict[str, list[SortedRows]]) -> list[Run]:
        """Carry out the ordered merges; returns the runs that make up the state now, in their order."""
        runs = {run.name: run for run in self.orders.runs if run.name in segments}
        if self.orders.merges:
            self._settle()
        for number, names in enumerate(self.orders.merges):
            if not self._fits([segment for name in names for segment in segments[name]]):
                continue  # it will be ordered again
            old = [runs.pop(name) for name in names]
            new = self._merge_one(number, old, runs, segments)
            if new is not None:
                runs[new.name] = new
            self.replaced.extend((one.name, one.live) for one in old)
            for one in old:
                del segments[one.name]
                self.tier.discard(one)
        return in_order(runs.values())

    def _fits(self, segments: Sequence[SortedRows]) -> bool:
        """Whether there is room for a merge: its output is there as a copy, and then as an image."""
        limit = self.orders.limits.memory_bytes
        if limit >= NO_BOUND:
            return True
        size = sum(segment.live_bytes(self.operator.groups) for segment in segments)
        return self._image_bytes() + MERGE_COPIES * size <= limit

    def _open_bytes(self) -> int:
        """What it takes to have the images of the state mapped, as objects of Arrow: counts as state."""
        return sum(of_input[0].open_bytes * len(of_input) for of_input in self.state if of_input)

    def _merge_one(
        self, number: int, old: list[Run], others: dict[str, Run], segments: dict[str, list[SortedRows]]
    ) -> Run | None:
        """The run that stands for the old ones, and adds its segment; None if nothing of them is left."""
        whole = [segment for run in old for segment in segments[run.name]]
        input_, position = old[0].input, old[0].position
        younger = [run for run in others.values() if run.input == input_ and run.position > position]
        newer = [segment for run in younger for segment in segments[run.name]]
        merged = self._in_window(input_, merge(whole, self.operator.groups, self.meter.sample), newer)
        self.meter.sample()
        if not merged.rows:
            return None
        last, parts = max(run.last_epoch for run in old), sum(run.parts for run in old)
        run, segment = self._write_run(f"m{number}", input_, merged, position, last, parts)
        self.meter.sample()
        segments[run.name] = [segment]
        return run

    def _in_window(self, number: int, rows: SortedRows, newer: Sequence[SortedRows]) -> SortedRows:  # noqa: ARG002
        """The rows of a merge that have not expired; an operator may look at newer state to tell."""
        groups = self.operator.groups
        left = self.expiry.unexpired(number, rows, groups)
        if left.rows < rows.rows:
            self._note_expired(
                np.diff(group_offsets(rows.hashes, groups)) - np.diff(group_offsets(left.hashes, groups)),
                rows,
            )
        return left

    def _note_grown(self, number: int, rows: SortedRows) -> None:
        """Count rows of an input that became state."""
        counts = np.diff(group_offsets(rows.hashes, self.operator.groups))
        self.group_rows += counts
        self.group_bytes += counts * (rows.nbytes / rows.rows)
        for join, ref in lineage_of(self.operator, number):
            rows_through = self.kept_counters[join].count(rows.columns.column(ref.column).to_numpy())
            none = np.zeros(self.operator.groups)
            size = rows_through * (rows.nbytes / rows.rows)
            self.kept_downstream[join] = self.kept_downstream.get(join, none.astype(np.int64)) + rows_through
            self.kept_downstream_bytes[join] = self.kept_downstream_bytes.get(join, none) + size

    def _has_room(self) -> bool:
        """Whether another round of input fits. The first one does in any case: something must go on."""
        if self.orders.advances and not self.advanced:
            return True
        limit = self.orders.limits.state_bytes
        return limit >= NO_BOUND or self._image_bytes() + self._open_bytes() < limit

    def _write_run(
        self,
        label: str,
        number: int,
        segment: SortedRows,
        position: Position,
        last_epoch: int,
        parts: int = 1,
    ) -> tuple[Run, SortedRows]:
        name = "runs/" + self._name(f"{label}.run")
        size, checksum = write_run(self.storage, name, segment, self.orders.run_compression)
        live = groups_in(segment.hashes, self.operator.groups)
        times = self._event_times(number, segment)
        rows = segment.rows
        run = Run(name, number, position, last_epoch, rows, size, checksum, live, times=times, parts=parts)
        self.added.append(run)
        self._settle()
        return run, self.tier.store(run, segment, live)

    def _next_position(self) -> Position:
        """The position of a run of rows that became state now: behind all others."""
        return Position(self.orders.sequence, self.orders.processor, len(self.added))

    def _event_times(self, number: int, segment: SortedRows) -> EventTimes | None:
        """What to note of the times of a run."""
        return self.expiry.times(number, segment)

    def _suspended_input(self) -> SuspendedInput | None:
        orders = self.orders
        if not orders.suspended:
            return None
        inputs = range(len(self.operator.inputs))
        writers = [self._pending_writer("suspended", number) for number in inputs]
        return SuspendedInput(orders.suspended, self.operator.groups, writers)

    def _pending_writer(self, label: str, number: int) -> PendingWriter:
        return PendingWriter(
            self.storage,
            "pending/" + self._name(label),
            number,
            self.operator.groups,
            self.orders.limits.pending_bytes,
            self.operator.wait_column,
        )

    def _name(self, suffix: str) -> str:
        """A file name that no other attempt of this or any other step uses."""
        return f"{self.orders.sequence:012d}-{self.orders.processor:04d}-{self.attempt.id}-{suffix}"


def nonzero(counts: np.typing.NDArray[np.int64]) -> dict[int, int]:
    return {int(group): int(counts[group]) for group in np.flatnonzero(counts)}


def lineage_of(operator: Operator, number: int) -> list[tuple[int, ColumnRef]]:
    """The joins below an input, and its columns with their groups."""
    return [(join, ref) for join, ref in operator.lineage if ref.input == number]


class Clock:
    """Adds the time of a block to a phase."""

    def __init__(self, seconds: dict[str, float], phase: str) -> None:
        self._seconds = seconds
        self._phase = phase

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        elapsed = time.perf_counter() - self._start
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + elapsed
