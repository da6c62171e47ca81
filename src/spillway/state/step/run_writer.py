"""Writes the runs of a step, durably and as images in memory."""

from dataclasses import replace

from spillway.state.memory import MemoryTier
from spillway.state.rows import Position, Run, SortedRows, groups_in, write_run
from spillway.state.step.phases import Phases
from spillway.state.step.retention import Retention
from spillway.state.step.task import Task


class RunWriter:
    def __init__(self, task: Task, tier: MemoryTier, retention: Retention, phases: Phases) -> None:
        self._task = task
        self._tier = tier
        self._retention = retention
        self._phases = phases
        self.added: list[Run] = []
        """All runs that were written so far."""

    def append(self, input_: int, rows: SortedRows) -> SortedRows:
        """Write rows that are new in state, behind all other rows; returns them as mapped from memory."""
        orders, number = self._task.orders, len(self.added)
        position = Position(orders.sequence, orders.processor, number)
        return self._write(f"{input_}-{number:04d}", input_, rows, position, orders.sequence, 1)[1]

    def collect(self, input_: int, rows: SortedRows) -> None:
        """Write rows that were joined with nothing; they are not kept in memory."""
        orders, number = self._task.orders, len(self.added)
        position = Position(orders.sequence, orders.processor, number)
        run = self._file(f"{input_}-{number:04d}", input_, rows, position, orders.sequence, 1)
        self.added.append(replace(run, live=0, spilled=run.live, unsaid=run.live))

    def replace(self, number: int, old: list[Run], rows: SortedRows) -> tuple[Run, SortedRows]:
        """Write the rows that stand for these neighbouring runs from now on; `number` tells merges apart."""
        first, last_epoch = old[0], max(run.last_epoch for run in old)
        parts = sum(run.parts for run in old)
        return self._write(f"m{number}", first.input, rows, first.position, last_epoch, parts)

    def _write(
        self, label: str, input_: int, rows: SortedRows, position: Position, last_epoch: int, parts: int
    ) -> tuple[Run, SortedRows]:
        run = self._file(label, input_, rows, position, last_epoch, parts)
        self.added.append(run)
        with self._phases("free"):
            self._tier.settle()
        return run, self._tier.store(run, rows, run.live)

    def _file(
        self, label: str, input_: int, rows: SortedRows, position: Position, last_epoch: int, parts: int
    ) -> Run:
        name = "runs/" + self._task.file_name(f"{label}.run")
        compression = self._task.orders.run_compression
        size, checksum = write_run(self._task.storage, name, rows, compression)
        live = groups_in(rows.hashes, self._task.operator.groups)
        times = self._retention.times(input_, rows)
        return Run(
            name, input_, position, last_epoch, rows.rows, size, checksum, live, times=times, parts=parts
        )
