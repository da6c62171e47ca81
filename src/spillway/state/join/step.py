"""One processor's part of one epoch of a join: state and input in, results and runs out.

The rule that makes every combination appear exactly once: within an epoch the inputs are taken in order,
and the delta of input i is joined with the new state of the inputs before i and the old state of the inputs
after i. A row whose probe had stopped inside it is finished first, alone, against the old state.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spillway.model import union
from spillway.state.join.cleanup import CleanupStep
from spillway.state.join.operator import JoinOperator
from spillway.state.join.production import Production
from spillway.state.orders import Report
from spillway.state.rows import Pending, SortedRows, merge, read_pending
from spillway.state.step import Attempt, Clock, Deltas, Intake


@dataclass(slots=True)
class JoinStep(Attempt[JoinOperator]):
    finished: list[list[SortedRows]] = field(init=False)
    """Rows probed and not yet durable, per input."""
    production: Production = field(init=False)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        busy = time.process_time()
        orders = self.orders
        self._prepare()
        self.production = Production(self.operator, self.writer, orders.limits, self.meter.sample)
        self.finished = [[] for _ in self.operator.inputs]
        if orders.clean:
            return self._clean(busy)
        self._open()
        # State that takes more than its share, after a turn of large groups, leaves less for all else.
        taken = self._image_bytes() + self._open_bytes()
        self.production.limits = limits = orders.limits.beside(max(orders.limits.state_bytes, taken))
        queue = self._finish_row(orders.pending)
        suspended = self._suspended_input()
        intake = Intake(
            self.operator,
            limits,
            self.storage,
            queue,
            batches,
            orders.watermark,
            suspended,
            self.meter.sample,
        )
        parked: list[Pending] = []
        while not parked and self.production.results_left > 0 and self._has_room():
            with Clock(self.seconds, "receive"):
                deltas = intake.round()
                self.meter.sample()
            if deltas is None:
                break
            with Clock(self.seconds, "probe"):
                parked = self._join(deltas)
            with Clock(self.seconds, "write"):
                self._write_runs()
            self.advanced = True
            del deltas  # the next round is as large
        with Clock(self.seconds, "park"):
            overflow = [self._pending_writer("overflow", number) for number in range(len(self.state))]
            left = intake.park(overflow)
            self.meter.sample()
            late = [pending for writer in overflow for pending in writer.close()]
            late += [*orders.suspended_pending, *(suspended.close() if suspended is not None else ())]
        with Clock(self.seconds, "write"):
            files = self.writer.close()
            self._write_runs()
            self.meter.sample()
        return replace(
            self._changes(busy, files, intake),
            pending=(*parked, *left, *late),
            probed_rows=int(self.group_rows.sum()),
        )

    def _clean(self, busy: float) -> Report:
        """The work of a clean-up epoch: no input, no change of state but the cursors."""
        self._settle()
        images = self._image_bytes()  # they stay as they are
        self.meter.images = lambda: images
        self.production.limits = self.orders.limits.beside(images)
        with Clock(self.seconds, "clean"):
            step = CleanupStep(self.storage, self.production)
            cursors, finished = step.run(self.orders.cleanup)
            self.meter.sample()
            files = self.writer.close()
        return replace(
            self._report(busy, files),
            pending=(*self.orders.pending, *self.orders.suspended_pending),
            probed_rows=step.driven_rows,
            cursors=tuple(cursors),
            cleaned=union(cursor.groups for cursor in finished if not cursor.restore),
            restored=union(cursor.groups for cursor in finished if cursor.restore),
        )

    def _finish_row(self, queue: tuple[Pending, ...]) -> tuple[Pending, ...]:
        """Go on with the row inside which an earlier epoch stopped, if there is one at the head of the queue.

        There are several after processors were merged; they are of different groups.
        """
        while queue and queue[0].emitted:
            head = queue[0]
            _, row = read_pending(self.storage, head, self.operator.groups, 1)
            done, emitted = self.production.rows(head.input, row, self.state, head.emitted)
            if done < row.rows:
                return (replace(head, emitted=emitted), *queue[1:])
            self._finish(head.input, row)
            queue = queue[1:]
        return queue

    def _join(self, deltas: Deltas) -> list[Pending]:
        """Probe the deltas in the order of the inputs; what the cap on results leaves over is parked."""
        for number, delta in enumerate(deltas):
            if delta is None:
                continue
            done, emitted = self.production.rows(number, delta, self.state, 0)
            if done:
                self._finish(number, delta.slice(0, done))
            if done < delta.rows:
                return self._park(number, delta.slice(done, delta.rows), emitted, deltas[number + 1 :])
        return []

    def _finish(self, number: int, rows: SortedRows) -> None:
        """Probed rows become state at once: of the inputs after this one they are new state."""
        self.finished[number].append(rows)
        self.state[number] = [*self.state[number], rows]

    def _park(
        self, number: int, rest: SortedRows, emitted: int, others: list[SortedRows | None]
    ) -> list[Pending]:
        stopped = rest.slice(0, 1)
        head = self._pending_writer("head", number)
        head.write(stopped)
        parked = [replace(pending, emitted=emitted) for pending in head.close()]
        for offset, delta in enumerate([rest.slice(1, rest.rows), *others]):
            if delta is not None:
                writer = self._pending_writer("rest", number + offset)
                writer.write(delta)
                parked += writer.close()
        return parked

    def _write_runs(self) -> None:
        """Make the rows probed since the last call durable, and map them from the memory tier from now on."""
        for number, parts in enumerate(self.finished):
            if not parts:
                continue
            rows = merge(parts, self.operator.groups, self.meter.sample)
            label = f"{number}-{len(self.added):04d}"
            _, image = self._write_run(label, number, rows, self._next_position(), self.orders.sequence)
            self.state[number] = [*self.state[number][: -len(parts)], image]
            self._note_grown(number, rows)
            parts.clear()
