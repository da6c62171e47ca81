"""One processor's part of one epoch of a join: state and input in, results and runs out.

The rule that makes every combination appear exactly once: within an epoch the inputs are taken in order,
and the delta of input i is joined with the new state of the inputs before i and the old state of the inputs
after i. A row whose probe had stopped inside it is finished first, alone, against the old state.
"""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from spillway.model import union
from spillway.state.join.cleanup import CleanupStep
from spillway.state.join.operator import JoinOperator
from spillway.state.join.production import Production
from spillway.state.orders import NO_BOUND, Limits, Orders, Report
from spillway.state.rows import Pending, PendingReader, SortedRows, open_bytes
from spillway.state.step import (
    Collection,
    Deltas,
    Intake,
    Outlet,
    ParkedInput,
    Phases,
    StateView,
    Task,
    TaskAttempt,
    result_writer,
    step_report,
)


class JoinStep:
    def __init__(
        self, orders: Orders, operator: JoinOperator, attempt: TaskAttempt, outlet: Outlet | None = None
    ) -> None:
        self._operator = operator
        self._task = task = Task(orders, operator, attempt)
        self._phases = phases = Phases()
        self._state = state = StateView(task, phases)
        self._parked = ParkedInput(task)
        self._results = result_writer(task, outlet, state.meter)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch with input."""
        orders, state, phases = self._task.orders, self._state, self._phases
        state.open()
        # State that takes more than its share, after a turn of large groups, leaves less for all else.
        taken_bytes = max(orders.limits.state_bytes, state.image_bytes + state.open_bytes)
        limits = orders.limits.beside(taken_bytes)
        production = self._production(limits)
        queue = self._finish_rows(production, orders.pending)
        intake = Intake(self._task, limits, state.meter, self._parked, queue, batches)
        must_advance = orders.advances
        stopped: list[Pending] = []
        while not stopped and not production.exhausted and (must_advance or state.has_room):
            with phases("receive"):
                deltas = intake.round()
                state.meter.sample()
            if deltas is None:
                break
            with phases("probe"):
                stopped = self._probe(production, deltas)
            del deltas  # the next round is as large, and so is the run of these rows
            with phases("write"):
                state.persist(limits.unwritten_bytes)
            must_advance = False
        with phases("write"):
            state.persist()  # before anything is parked, which takes memory too
        with phases("park"):
            pending = [*stopped, *intake.park(), *self._parked.close()]
        with phases("write"):
            files = self._results.close()
            state.meter.sample()
        state.receive_groups()
        probed_rows = int(state.tally.rows.sum())
        return step_report(
            self._task,
            state,
            self._results,
            phases,
            files=files,
            pending=pending,
            probed_rows=probed_rows,
            intake=intake,
        )

    def collect(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """An epoch whose rows are only written, also while joins below are cleaned up.

        This join's own clean-up joins them.
        """
        orders, state, phases = self._task.orders, self._state, self._phases
        state.free()
        state.settle()
        limits = replace(orders.limits.beside(state.image_bytes), rows=NO_BOUND)
        waits, queue = (orders.pending, ()) if orders.clean else ((), orders.pending)
        intake = Intake(self._task, limits, state.meter, self._parked, queue, batches)
        collection = Collection(self._task, state.runs, state.meter)
        rows = 0
        with phases("write"):
            while (deltas := intake.round()) is not None:
                for number, delta in enumerate(deltas):
                    if delta is not None:
                        collection.add(number, delta)
                        rows += delta.rows
                collection.write(limits.unwritten_bytes)
                state.meter.sample()
                del deltas
            collection.write()
        pending = [*waits, *intake.park(), *self._parked.close()]
        return step_report(
            self._task,
            state,
            self._results,
            phases,
            files=self._results.close(),
            pending=pending,
            probed_rows=rows,
            intake=intake,
            collection=collection,
        )

    def clean(self) -> Report:
        """A clean-up epoch: no input, no change of state but the cursors."""
        orders, state = self._task.orders, self._state
        state.free()
        state.settle()
        inputs = self._operator.inputs
        opened = sum(open_bytes(len(inputs[run.input].columns)) for run in orders.cleanup_runs)
        production = self._production(orders.limits.beside(state.image_bytes + opened))
        step = CleanupStep(self._task.storage, production, orders.cleanup_runs)
        with self._phases("clean"):
            cursors, finished = step.run(orders.cleanup)
            state.meter.sample()
            files = self._results.close()
        report = step_report(
            self._task,
            state,
            self._results,
            self._phases,
            files=files,
            pending=(*orders.pending, *orders.suspended_pending),
            probed_rows=step.read_rows,
        )
        return replace(
            report,
            read_bytes=step.read_bytes,
            work=orders.limits.work - production.work_left,
            cursors=tuple(cursors),
            cleaned=union(cursor.groups for cursor in finished if not cursor.restore),
            restored=union(cursor.groups for cursor in finished if cursor.restore),
        )

    def _production(self, limits: Limits) -> Production:
        return Production(self._operator, self._results, limits, self._state.meter.sample)

    def _finish_rows(self, production: Production, queue: tuple[Pending, ...]) -> tuple[Pending, ...]:
        """Go on with the row inside which an earlier epoch stopped, if there is one at the head of the queue.

        There are several after processors were merged; they are of different groups.
        """
        state = self._state
        while queue and queue[0].emitted:
            head = queue[0]
            _, row = PendingReader(self._task.storage, self._operator.groups).read(head, 1)
            done, emitted = production.produce(head.input, row, state.segments, head.emitted)
            if done < row.rows:
                return (replace(head, emitted=emitted), *queue[1:])
            state.add(head.input, row)
            queue = queue[1:]
        return queue

    def _probe(self, production: Production, deltas: Deltas) -> list[Pending]:
        """Probe the deltas in the order of the inputs; what the cap on results leaves over is parked.

        Probed rows become state at once: for the inputs after theirs they are new state.
        """
        state = self._state
        for number, delta in enumerate(deltas):
            if delta is None:
                continue
            done, emitted = production.produce(number, delta, state.segments, 0)
            if done:
                state.add(number, delta.slice(0, done))
            if done < delta.rows:
                return self._park(number, delta.slice(done, delta.rows), emitted, deltas[number + 1 :])
        return []

    def _park(self, number: int, rest: SortedRows, emitted: int, others: Deltas) -> list[Pending]:
        """Park the row that the probe stopped in, alone, then what follows it."""
        stopped = self._parked.write("head", number, rest.slice(0, 1))
        parked = [replace(pending, emitted=emitted) for pending in stopped]
        for offset, delta in enumerate([rest.slice(1, rest.rows), *others]):
            if delta is not None:
                parked += self._parked.write("rest", number + offset, delta)
        return parked
