"""The state of one operator on one processor, as a step sees and changes it.

A step opens it: what leaves memory is freed, the ordered runs are loaded, those that expired are dropped, and
the ordered merges are carried out. Then the step adds rows, and persists them as runs.

Invariant: the segments of an input are in the order of their runs, and `added` rows come last. So the order
of the matches of a key does not depend on how often its rows were merged or persisted.
"""

from collections.abc import Iterable, Sequence

from spillway.model import GroupSet
from spillway.state.memory import MemoryTier
from spillway.state.orders import NO_BOUND
from spillway.state.rows import Run, SortedRows, in_order, merge
from spillway.state.step.meter import MemoryMeter
from spillway.state.step.phases import Phases
from spillway.state.step.run_writer import RunWriter
from spillway.state.step.tally import GroupTally
from spillway.state.step.task import Task
from spillway.state.step.unwritten import Unwritten

MERGE_COPIES = 2.25
"""How often a merge has its output in memory: as a copy and as an image, and for nested values some more."""
Loaded = dict[str, list[SortedRows]]
"""Per run, by name, its rows in memory."""


class StateView:
    def __init__(self, task: Task, phases: Phases) -> None:
        orders, operator = task.orders, task.operator
        self._orders = orders
        self._groups = operator.groups
        self._storage = task.storage
        self._phases = phases
        self._retention = operator.retention(orders)
        self.tier = tier = MemoryTier(orders.tier, operator.groups)
        # No part refers back to this view: a cycle would keep images mapped until garbage is collected.
        self.meter = MemoryMeter.of(tier, shared=orders.shared_tier, limit_bytes=orders.limits.memory_bytes)
        self.runs = RunWriter(task, tier, self._retention, phases)
        self.tally = GroupTally(task)
        self.segments: list[list[SortedRows]] = [[] for _ in operator.inputs]
        """Per input, oldest first."""
        self._unwritten = Unwritten(len(operator.inputs))
        """Those of the last segments that are not durable yet."""
        self.replaced: list[tuple[str, GroupSet]] = []
        """Slices of runs that expired, or for which another run stands now."""
        self.loaded_bytes = 0

    def free(self) -> None:
        """Give back the memory of all runs and groups that the orders do not want here."""
        orders = self._orders
        with self._phases("load"):
            self.tier.keep_only((*orders.runs, *orders.incoming))
            if orders.free or not orders.clean:
                self.tier.open()
        if orders.free:
            with self._phases("free"):
                self.tier.free(orders.free)

    def open(self) -> None:
        """Free memory, then load the state as the orders describe it."""
        self.free()
        with self._phases("load"):
            loaded: Loaded = {run.name: self._load(run) for run in self._orders.runs}
        with self._phases("merge"):
            self._expire(loaded)
            runs = self._merge(loaded)
        for run in runs:
            self.segments[run.input] += loaded[run.name]

    def add(self, input_: int, rows: SortedRows) -> None:
        """Make rows a part of the state; they are durable after `persist`."""
        self.segments[input_].append(rows)
        self._unwritten.add(input_, rows)

    def persist(self, most_bytes: int = 0) -> None:
        """Write added rows as runs, and map them from memory from now on.

        Up to `most_bytes` may stay unwritten: one run of an input is better than several.
        """
        for number, parts in self._unwritten.most_first(most_bytes):
            rows = merge(parts, self._groups, self.meter.sample)
            del self.segments[number][-len(parts) :]
            parts.clear()  # the image takes as much
            self.segments[number].append(self.runs.append(number, rows))
            self.meter.sample()
            self.tally.add(number, rows)
            del rows

    def receive_groups(self) -> None:
        """Load what is about to move here; a part of it may be there already."""
        with self._phases("receive groups"):
            for run in self._orders.incoming:
                self._load(run)
            self.meter.sample()

    def settle(self) -> None:
        """Wait for what the step frees; the wait counts as freeing, not the work that went on beside it."""
        with self._phases("free"):
            self.tier.settle()

    @property
    def image_bytes(self) -> int:
        """The memory of all images of this processor, those of other operators included."""
        return self.meter.images()

    @property
    def open_bytes(self) -> int:
        """What it takes to have the segments mapped, as objects of Arrow: counts as state."""
        return sum(of_input[0].open_bytes * len(of_input) for of_input in self.segments if of_input)

    @property
    def has_room(self) -> bool:
        """Whether more input may become state."""
        limit = self._orders.limits.state_bytes
        return limit >= NO_BOUND or self.image_bytes + self.open_bytes + self._unwritten.bytes < limit

    def _load(self, run: Run) -> list[SortedRows]:
        segments, read_bytes = self.tier.load(self._storage, run, run.live)
        self.loaded_bytes += read_bytes
        return segments

    def _expire(self, loaded: Loaded) -> None:
        """Drop the runs all of whose rows are too old."""
        for run in self._orders.runs:
            if run.name in self._orders.expired:
                for segment in loaded[run.name]:
                    self.tally.expire(segment)
                self._discard([run], loaded)

    def _merge(self, loaded: Loaded) -> list[Run]:
        """Carry out the ordered merges; returns the runs that make up the state now, in their order."""
        runs = {run.name: run for run in self._orders.runs if run.name in loaded}
        if self._orders.merges:
            self.settle()
        for number, names in enumerate(self._orders.merges):
            if not self._fits([segment for name in names for segment in loaded[name]]):
                continue  # it will be ordered again
            old = [runs.pop(name) for name in names]
            rows = self._merged(old, runs.values(), loaded)
            if rows.rows:
                run, segment = self.runs.replace(number, old, rows)
                self.meter.sample()
                runs[run.name], loaded[run.name] = run, [segment]
            del rows  # before the next merge takes as much
            self._discard(old, loaded)
        return in_order(runs.values())

    def _fits(self, segments: Sequence[SortedRows]) -> bool:
        """Whether there is room for a merge: its output is there as a copy, and then as an image."""
        limit = self._orders.limits.memory_bytes
        if limit >= NO_BOUND:
            return True
        size = sum(segment.live_bytes(self._groups) for segment in segments)
        return self.image_bytes + MERGE_COPIES * size <= limit

    def _merged(self, old: list[Run], others: Iterable[Run], loaded: Loaded) -> SortedRows:
        """The rows that stay of some neighbouring runs."""
        first = old[0]
        younger = (run for run in others if run.input == first.input and run.position > first.position)
        newer = [segment for run in younger for segment in loaded[run.name]]
        parts = [segment for run in old for segment in loaded[run.name]]
        rows = merge(parts, self._groups, self.meter.sample)
        left = self._retention.retained(first.input, rows, newer)
        if left.rows < rows.rows:
            self.tally.expire(rows, left)
        self.meter.sample()
        return left

    def _discard(self, runs: Iterable[Run], loaded: Loaded) -> None:
        for run in runs:
            del loaded[run.name]
            self.replaced.append((run.name, run.live))
            self.tier.discard(run)
