"""One processor's part of one epoch: state and input in, results and runs out.

The rule that makes every combination appear exactly once: within an epoch the inputs are taken in order,
and the delta of input i is joined with the new state of the inputs before i and the old state of the inputs
after i. A row whose probe had stopped inside it is finished first, alone, against the old state.

Invariant: a step only creates files under names of its own attempt and changes nothing that exists, so it
may be run any number of times; only the attempt whose report is committed counts.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from spillway.model.group_set import GroupSet
from spillway.state.allocator import bound_allocator, give_back
from spillway.state.cleanup import CleanupStep
from spillway.state.cursor import Cursor
from spillway.state.expiry import Expiry
from spillway.state.group import Int64Array, cut, present
from spillway.state.intake import Deltas, Held, Intake
from spillway.state.memory_tier import MemoryTier
from spillway.state.operator import JoinOperator
from spillway.state.orders import NO_BOUND, Orders, Report
from spillway.state.pending import Pending, PendingWriter, consume, read_pending
from spillway.state.probe import chunk, probe
from spillway.state.results import ResultWriter
from spillway.state.run import Run, write_run
from spillway.state.segment import Segment, merge
from spillway.state.storage import Storage


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt runs; `attempt` makes its file names its own."""

    host: str
    executor: str
    attempt: str


def run_step(
    orders: Orders, operator: JoinOperator, place: Place, batches: Iterable[pa.RecordBatch]
) -> Report:
    round_bytes = orders.limits.round_bytes
    if round_bytes >= NO_BOUND:
        return _Step(orders, operator, place).run(batches)
    bound_allocator(round_bytes // 2)
    report = _Step(orders, operator, place).run(batches)
    give_back()
    return report


@dataclass(slots=True)
class _Step:
    orders: Orders
    operator: JoinOperator
    place: Place
    storage: Storage = field(init=False)
    tier: MemoryTier = field(init=False)
    writer: ResultWriter = field(init=False)
    state: list[list[Segment]] = field(init=False)
    """Old state per input, oldest segment first."""
    finished: list[list[Segment]] = field(init=False)
    """Rows probed and not yet durable, per input."""
    group_rows: Int64Array = field(init=False)
    group_bytes: np.typing.NDArray[np.float64] = field(init=False)
    expiry: Expiry = field(init=False)
    expired_rows: Int64Array = field(init=False)
    expired_bytes: np.typing.NDArray[np.float64] = field(init=False)
    added: list[Run] = field(default_factory=list)
    replaced: list[tuple[str, GroupSet]] = field(default_factory=list)
    results_left: int = 0
    loaded_bytes: int = 0
    freed_bytes: int = 0
    peak_bytes: int = 0
    allocated_before: int = 0
    """What Arrow had allocated before this step."""
    held_bytes: int = 0
    """The batch that arrived last, which Arrow did not allocate."""
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        busy = time.process_time()
        orders = self.orders
        self._prepare()
        if orders.clean:
            return self._clean(busy)
        self._open()
        queue = self._finish_row(orders.pending)
        held = self._held()
        intake = Intake(self.operator, orders.limits, self.storage, queue, batches, orders.watermark, held)
        parked: list[Pending] = []
        while not parked and self.results_left > 0 and (not self.added or self._has_room()):
            with _Clock(self.seconds, "receive"):
                deltas = intake.round()
                self.held_bytes = intake.held_bytes
                self._sample()
            if deltas is None:
                break
            with _Clock(self.seconds, "probe"):
                parked = self._join(deltas)
            with _Clock(self.seconds, "write"):
                self._write_runs()
        with _Clock(self.seconds, "park"):
            overflow = [self._pending_writer("late", number) for number in range(len(self.state))]
            left = intake.park(overflow)
            self.held_bytes = max(self.held_bytes, intake.held_bytes)
            self._sample()
            late = [pending for writer in overflow for pending in writer.close()]
            late += [*orders.held, *(held.close() if held is not None else ())]
        with _Clock(self.seconds, "write"):
            files = self.writer.close()
            self._write_runs()
            self._sample()
        return replace(
            self._report(busy, files),
            added=tuple(self.added),
            replaced=tuple(self.replaced),
            pending=(*parked, *left, *late),
            input_rows=intake.input_rows,
            probed_rows=int(self.group_rows.sum()),
            group_rows=_nonzero(self.group_rows),
            group_bytes=_nonzero(self.group_bytes.astype(np.int64)),
            latest=tuple(intake.latest),
            late_rows=intake.late_rows,
            expired_rows=_nonzero(self.expired_rows),
            expired_bytes=_nonzero(self.expired_bytes.astype(np.int64)),
        )

    def _prepare(self) -> None:
        orders, operator = self.orders, self.operator
        self.allocated_before = pa.total_allocated_bytes()
        self.storage = Storage(orders.state)
        self.tier = MemoryTier(orders.tier, operator.groups)
        self.results_left = orders.limits.results
        self.writer = ResultWriter(operator, orders.staging, self._name("parquet"), orders.result_compression)
        self.finished = [[] for _ in operator.inputs]
        self.group_rows = np.zeros(operator.groups, dtype=np.int64)
        self.group_bytes = np.zeros(operator.groups, dtype=np.float64)
        self.expiry = Expiry(operator.windows, orders.watermark, orders.keep)
        self.expired_rows = np.zeros(operator.groups, dtype=np.int64)
        self.expired_bytes = np.zeros(operator.groups, dtype=np.float64)
        with _Clock(self.seconds, "free"):
            self.freed_bytes = self.tier.free(orders.free) if orders.free else 0

    def _clean(self, busy: float) -> Report:
        """The work of a clean-up epoch: no input, no change of state but the cursors."""
        with _Clock(self.seconds, "clean"):
            step = CleanupStep(self.operator, self.storage, self.writer, self.orders.limits)
            cursors, finished = step.run(self.orders.cleanup)
            self._sample()
            files = self.writer.close()
        return replace(
            self._report(busy, files),
            pending=(*self.orders.pending, *self.orders.held),
            probed_rows=step.driven_rows,
            cursors=tuple(cursors),
            cleaned=_groups(cursor for cursor in finished if not cursor.restore),
            restored=_groups(cursor for cursor in finished if cursor.restore),
        )

    def _report(self, busy: float, files: tuple[tuple[str, int, int], ...]) -> Report:
        return Report(
            processor=self.orders.processor,
            host=self.place.host,
            executor=self.place.executor,
            added=(),
            replaced=(),
            pending=(),
            files=files,
            input_rows=0,
            probed_rows=0,
            results=self.writer.rows,
            resident_bytes=self.tier.resident_bytes(),
            loaded_bytes=self.loaded_bytes,
            busy_seconds=time.process_time() - busy,
            seconds=self.seconds,
            group_results=_nonzero(self.writer.group_results),
            freed_bytes=self.freed_bytes,
            peak_bytes=self.peak_bytes,
        )

    def _sample(self) -> None:
        """Note the memory of now: images, the arriving batch, and what Arrow has allocated besides."""
        allocated = pa.total_allocated_bytes() - self.allocated_before
        now = self.tier.resident_bytes() + self.held_bytes + allocated
        self.peak_bytes = max(self.peak_bytes, now)

    def _open(self) -> None:
        orders, operator = self.orders, self.operator
        with _Clock(self.seconds, "load"):
            self.tier.keep_only(orders.runs)
            segments: dict[str, list[Segment]] = {}
            for run in orders.runs:
                segments[run.name], loaded = self.tier.load(self.storage, run, run.live)
                self.loaded_bytes += loaded
        with _Clock(self.seconds, "merge"):
            self._expire(segments)
            runs = self._merge(segments)
        self.state = [
            [segment for run in runs if run.input == number for segment in segments[run.name]]
            for number in range(len(operator.inputs))
        ]

    def _expire(self, segments: dict[str, list[Segment]]) -> None:
        """Give up the runs that are too old as a whole."""
        for run in self.orders.runs:
            if run.name in self.orders.expired:
                for segment in segments.pop(run.name):
                    sizes = np.diff(cut(segment.hashes, self.operator.groups))
                    live = sizes if segment.live is None else sizes * segment.live
                    self._note_expired(live, segment)
                self.replaced.append((run.name, run.live))
                self.tier.discard(run)

    def _note_expired(self, rows: Int64Array, of: Segment) -> None:
        self.expired_rows += rows
        self.expired_bytes += rows * (of.nbytes / max(1, of.rows))

    def _merge(self, segments: dict[str, list[Segment]]) -> list[Run]:
        """Carry out the ordered merges; returns the runs that make up the state now, oldest first."""
        runs = {run.name: run for run in self.orders.runs if run.name in segments}
        for number, names in enumerate(self.orders.merges):
            old = [runs.pop(name) for name in names]
            merged = merge([segment for run in old for segment in segments[run.name]], self.operator.groups)
            merged = self._in_window(old[0].input, merged)
            self._sample()
            if merged.rows:
                first, last = min(run.first_epoch for run in old), max(run.last_epoch for run in old)
                run, segment = self._write_run(f"m{number}", old[0].input, merged, first, last)
                self._sample()
                runs[run.name] = run
                segments[run.name] = [segment]
            self.replaced.extend((one.name, one.live) for one in old)
            for one in old:
                del segments[one.name]
                self.tier.discard(one)
        return sorted(runs.values(), key=lambda run: run.first_epoch)

    def _in_window(self, number: int, rows: Segment) -> Segment:
        """The rows that have not expired."""
        groups = self.operator.groups
        left = self.expiry.left(number, rows, groups)
        if left.rows < rows.rows:
            self._note_expired(np.diff(cut(rows.hashes, groups)) - np.diff(cut(left.hashes, groups)), rows)
        return left

    def _finish_row(self, queue: tuple[Pending, ...]) -> tuple[Pending, ...]:
        """Go on with the row inside which an earlier epoch stopped, if there is one at the head of the queue.

        There are several after processors were merged; they are of different groups.
        """
        while queue and queue[0].emitted:
            head = queue[0]
            _, row = read_pending(self.storage, head, self.operator.groups, 1)
            done, emitted = self._probe(head.input, row, self.state, head.emitted)
            if done < row.rows:
                return (replace(head, emitted=emitted), *queue[1:])
            self._finish(head.input, row)
            queue = consume(queue, 1)
        return queue

    def _has_room(self) -> bool:
        limit = self.orders.limits.state_bytes
        return limit >= NO_BOUND or self.tier.resident_bytes() < limit

    def _join(self, deltas: Deltas) -> list[Pending]:
        """Probe the deltas in the order of the inputs; what the cap on results leaves over is parked."""
        for number, delta in enumerate(deltas):
            if delta is None:
                continue
            done, emitted = self._probe(number, delta, self.state, 0)
            if done:
                self._finish(number, _slice(delta, 0, done))
            if done < delta.rows:
                return self._park(number, _slice(delta, done, delta.rows), emitted, deltas[number + 1 :])
        return []

    def _finish(self, number: int, rows: Segment) -> None:
        """Probed rows become state at once: of the inputs after this one they are new state."""
        self.finished[number].append(rows)
        self.state[number] = [*self.state[number], rows]

    def _probe(
        self, number: int, delta: Segment, state: list[list[Segment]], emitted: int
    ) -> tuple[int, int]:
        """Produce the results that the delta drives; returns the rows done, and the results of the next."""
        limits = self.orders.limits
        for start in range(0, delta.rows, limits.block_rows):
            block = _slice(delta, start, min(delta.rows, start + limits.block_rows))
            found = probe(
                block, number, state, self.operator.groups, self.operator.key_columns, limits.gather_rows
            )
            begin = emitted if start == 0 else 0
            stop = min(found.total, begin + self.results_left)
            for low in range(begin, stop, limits.chunk_rows):
                self.writer.write(chunk(found, low, min(stop, low + limits.chunk_rows)))
                self._sample()
            self.results_left -= max(0, stop - begin)
            if stop < found.total:
                done, emitted = found.position(stop)
                return start + done, emitted
        return delta.rows, 0

    def _park(self, number: int, rest: Segment, emitted: int, others: list[Segment | None]) -> list[Pending]:
        stopped = _slice(rest, 0, 1)
        head = self._pending_writer("head", number, present(stopped.hashes, self.operator.groups))
        head.write(stopped)
        parked = [replace(pending, emitted=emitted) for pending in head.close()]
        for offset, delta in enumerate([_slice(rest, 1, rest.rows), *others]):
            if delta is not None:
                writer = self._pending_writer("rest", number + offset)
                writer.write(delta)
                parked += writer.close()
        return parked

    def _write_runs(self) -> None:
        """Make the rows probed since the last call durable, and map them from the memory tier from now on."""
        sequence = self.orders.sequence
        for number, parts in enumerate(self.finished):
            if not parts:
                continue
            rows = merge(parts, self.operator.groups)
            label = f"{number}-{len(self.added):04d}"
            _, image = self._write_run(label, number, rows, sequence, sequence)
            self.state[number] = [*self.state[number][: -len(parts)], image]
            counts = np.diff(cut(rows.hashes, self.operator.groups))
            self.group_rows += counts
            self.group_bytes += counts * (rows.nbytes / rows.rows)
            parts.clear()

    def _write_run(
        self, label: str, number: int, segment: Segment, first_epoch: int, last_epoch: int
    ) -> tuple[Run, Segment]:
        name = "runs/" + self._name(f"{label}.run")
        size, checksum = write_run(self.storage, name, segment, self.orders.run_compression)
        live = present(segment.hashes, self.operator.groups)
        times = self.expiry.times(number, segment)
        run = Run(name, number, first_epoch, last_epoch, segment.rows, size, checksum, live, times=times)
        self.added.append(run)
        return run, self.tier.store(run, segment, live)

    def _held(self) -> Held | None:
        orders = self.orders
        if not orders.suspended:
            return None
        inputs = range(len(self.operator.inputs))
        writers = [self._pending_writer("held", number, orders.suspended) for number in inputs]
        return Held(orders.suspended, self.operator.groups, writers)

    def _pending_writer(self, label: str, number: int, groups: GroupSet | None = None) -> PendingWriter:
        return PendingWriter(
            self.storage,
            "pending/" + self._name(label),
            number,
            self.orders.groups & ~self.orders.suspended if groups is None else groups,
            self.orders.limits.pending_bytes,
        )

    def _name(self, suffix: str) -> str:
        """A file name that no other attempt of this or any other step uses."""
        return f"{self.orders.sequence:012d}-{self.orders.processor:04d}-{self.place.attempt}-{suffix}"


def _groups(cursors: Iterable[Cursor]) -> GroupSet:
    groups = 0
    for cursor in cursors:
        groups |= cursor.groups
    return groups


def _slice(segment: Segment, start: int, stop: int) -> Segment:
    return Segment(segment.hashes[start:stop], segment.columns.slice(start, stop - start))


def _nonzero(counts: np.typing.NDArray[np.int64]) -> dict[int, int]:
    return {int(group): int(counts[group]) for group in np.flatnonzero(counts)}


class _Clock:
    """Adds the time of a block to a phase."""

    def __init__(self, seconds: dict[str, float], phase: str) -> None:
        self._seconds = seconds
        self._phase = phase

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        elapsed = time.perf_counter() - self._start
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + elapsed
