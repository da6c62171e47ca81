"""The cost of a tree, as total work and as time (dissertation, 2.4.2 and 3.1.2), from estimated rows.

Work is in seconds of one processor and adds up over joins, so dynamic programming can minimise it. A hash
table is replicated to all processors, or both sides are partitioned by the key, whichever is cheaper. If they
are partitioned, the rows that probe are redirected, unless they are partitioned by that key already. Time:
the segments that a segment needs run side by side, on processors shared out by building size; then it builds
and probes on all processors that it has. A replicated table is built in one place, a partitioned one by all
processors together. Unlike in the dissertation's formulae, k processors never take less than 1/k of the work,
not even while several hash tables are built at once: processors are not assumed to be idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from spillway.compute.allocate import allocate
from spillway.compute.cardinality import Cardinality
from spillway.compute.join_graph import JoinGraph
from spillway.compute.tree import Input, ProbeStep, Segment, mask_of_input, steps
from spillway.compute.unit_costs import COLUMNAR, UnitCosts

ROW_HEADER_BYTES = 16
"""What a row in a hash table takes beyond its values: the next row of its key, and padding."""
HASH_ENTRY_BYTES, SLOT_BYTES = 32, 8
"""The least that a key takes besides its row. With pages, a table has as many slots as the next power of two
above four times its keys: Spark fills at most a quarter of them."""
UNPARTITIONED = -1
MOST_ROUNDS = 1024
"""The most rounds of all processors in which partitioned hash tables are built."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is to run on."""

    processors: int = 2
    memory_bytes: float | None = None
    """For hash tables; None: no limit."""
    replicate_bytes: float = 256e6
    """The largest hash table that is replicated."""
    table_factor: float = 1.0
    """The size of hash tables that earlier runs measured, over the estimate."""
    by_columns: bool = False
    """Whether tasks join columns (see `columnar`): then each has all hash tables, and only the rows that
    probe in the last segment are shared out."""
    table_page_bytes: float = 0.0
    """The first size of the memory for a hash table's rows, which doubles; 0: exactly what the rows take."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """One join: its work by phase, and how the rows are partitioned after it."""

    serial: float
    """The part of building that is done in one place: starting, and all of a replicated table."""
    shared: float
    """The part of building that all processors share: moving, partitioning and inserting rows."""
    probe: float
    replicated: bool
    partitioned_by: int

    @property
    def build(self) -> float:
        return self.serial + self.shared


class TreeCost:
    """Costs of the trees of one graph on one machine."""

    __slots__ = ("_is_short", "cardinality", "graph", "machine", "units")

    def __init__(self, graph: JoinGraph, units: UnitCosts | None = None, machine: Machine | None = None):
        self.graph = graph
        self.machine = machine or Machine()
        self.units = COLUMNAR if self.machine.by_columns else units or UnitCosts()
        self.cardinality = Cardinality(graph)
        limit = self.machine.memory_bytes
        tables = sum(self.table_bytes(1 << index) for index in range(graph.size)) if limit is not None else 0
        self._is_short = limit is not None and tables > limit

    def table_bytes(self, mask: int) -> float:
        """The size of a hash table over the rows of a set."""
        return self._table_bytes(mask, 1)

    def _table_bytes(self, mask: int, partitions: int) -> float:
        rows, page = self.cardinality.rows(mask) / partitions, self.machine.table_page_bytes
        kept = rows * (self.cardinality.row_bytes(mask) + ROW_HEADER_BYTES)
        if page <= 0:
            return (kept + rows * HASH_ENTRY_BYTES) * self.machine.table_factor
        return (page * _power(kept / page) + SLOT_BYTES * _power(4 * rows)) * self.machine.table_factor

    def memory_bytes(self, segment: Segment) -> float:
        """What the hash tables of one segment take together."""
        return sum(self.table_bytes(mask_of_input(build)) for build in segment.builds)

    def partitions(self, segments: Sequence[Segment]) -> int:
        """Into how many parts a statement of these segments partitions rows: one per processor, or more if
        the partitioned hash tables that are in memory would not fit beside the replicated ones."""
        processors, limit = self.machine.processors, self.machine.memory_bytes
        whole, parted = self._tables(segments)
        total = sum(self.table_bytes(mask) for mask in parted)
        if limit is None or not parted:
            return processors
        room = limit - sum(self.table_bytes(mask) for mask in whole)
        return processors * (MOST_ROUNDS if room <= 0 else min(MOST_ROUNDS, max(1, ceil(total / room))))

    def resident_bytes(self, segments: Sequence[Segment]) -> float:
        """What the hash tables of a statement of these segments take at a time."""
        whole, parted = self._tables(segments)
        count = self.partitions(segments)
        held = sum(self._table_bytes(mask, count) for mask in parted) * self.machine.processors
        return held + sum(self.table_bytes(mask) for mask in whole)

    def _tables(self, segments: Sequence[Segment]) -> tuple[list[int], list[int]]:
        """The hash tables of a statement: those that are replicated, and those that are partitioned."""
        made: tuple[list[int], list[int]] = ([], [])
        for segment in segments:
            for build, replicated in zip(segment.builds, self.replicated(segment), strict=True):
                made[0 if replicated else 1].append(mask_of_input(build))
        return made

    def fits(self, tree: Segment) -> bool:
        """Whether every segment alone has the memory that it needs."""
        limit = self.machine.memory_bytes
        return limit is None or all(self.memory_bytes(segment) <= limit for segment in tree.segments())

    def scan(self, relation: int) -> float:
        return self.units.read * self.graph.relations[relation].rows

    def join(self, before: int, build: int, classes: tuple[int, ...], partitioned_by: int) -> StepCost:
        """One join, without what it costs to produce its two sides."""
        units, cardinality = self.units, self.cardinality
        building, probing = cardinality.rows(build), cardinality.rows(before)
        moved = building * cardinality.row_bytes(build) * units.network
        redirected = self._redirected(before)
        stays = partitioned_by in classes
        replicated_cost = moved * self.machine.processors
        stages = units.launch * (1 if stays else 2)  # one more for each side that is moved
        partitioned_cost = moved + building * units.partition + stages + (0.0 if stays else redirected)
        fits = self.table_bytes(build) <= self.machine.replicate_bytes
        replicated = fits and replicated_cost <= partitioned_cost
        probe = units.probe * probing + (0.0 if replicated or stays else redirected)
        if self.machine.by_columns and len(classes) > 1:  # one key finds pairs, the others are compared
            best = cardinality.by_matches(classes, before, build)[0]
            probe += units.probe * cardinality.matches(best, before, build)
        after = partitioned_by if replicated or stays else classes[0]
        if replicated:
            serial = units.launch + replicated_cost + units.build * building
            return StepCost(serial, 0.0, probe, replicated, after)
        shared = moved + (units.partition + units.build) * building
        return StepCost(units.launch + stages, shared, probe, replicated, after)

    def replicated(self, segment: Segment) -> tuple[bool, ...]:
        """For each build of a segment, whether every processor gets all of it."""
        return tuple(cost.replicated for _, cost in self._costs(segment))

    def keep(self, mask: int) -> float:
        """Keeping a segment's result outside of memory; free if all hash tables fit (see `fuse`)."""
        if not self._is_short:
            return 0.0
        kept = self.cardinality.rows(mask) * self.cardinality.row_bytes(mask) * self.units.keep
        return self.units.setup + kept

    def work(self, tree: Segment) -> float:
        """Seconds of one processor for the whole tree; writing the final result is left out."""
        total = self._own_work(tree)
        for child in tree.children:
            total += self.work(child) + self.keep(child.mask)
        return total

    def seconds(self, tree: Segment, processors: int | None = None) -> float:
        """Time on some processors (by default all of the machine)."""
        available = self.machine.processors if processors is None else processors
        if self.machine.by_columns:
            probing = sum(cost.probe for _, cost in self._costs(tree)) + self._emit(tree)
            joining = self.work(tree) + self._emit(tree) - probing * (1 - 1 / available)
            result = self.cardinality.rows(tree.mask) * self.cardinality.row_bytes(tree.mask)
            return self.units.setup + joining + result * self.units.keep
        factor = self.units.contention_factor(available)
        costs = self._costs(tree)
        children = tree.children
        shares = dict(
            zip(children, allocate([self.memory_bytes(child) for child in children], available), strict=True)
        )
        times, work = [0.0], 0.0
        inputs: list[tuple[Input, float, float]] = [
            (step.build, cost.serial * factor, cost.shared * factor) for step, cost in costs
        ]
        for side, serial, shared in ((tree.probe, 0.0, 0.0), *inputs):
            build = serial + shared / available
            if isinstance(side, Segment):
                kept = self.keep(side.mask)
                times.append(self.seconds(side, shares[side]) + kept + build)
                work += self.work(side) + kept + serial + shared
            elif build > 0:
                read = self.scan(side)
                times.append(read / self._readers(side, available) + build)
                work += read + serial + shared
        return max(*times, work / available) + self._probing_seconds(tree, costs, available)

    def spreads(self, segment: Segment) -> bool:
        """Whether to spread the rows that probe over all processors first. It pays if one file holds them and
        there is much to probe."""
        return self._spread_gain(segment, self._costs(segment), self.machine.processors) > 0

    def _probing_seconds(
        self, tree: Segment, costs: list[tuple[ProbeStep, StepCost]], available: int
    ) -> float:
        probing = sum(cost.probe for _, cost in costs) + self._emit(tree)
        gain = self._spread_gain(tree, costs, available)
        readers = self._readers(tree.probe, available)
        if all(cost.replicated for _, cost in costs):
            return (self._scan_of(tree.probe) + probing) / readers - max(gain, 0.0)
        return self._scan_of(tree.probe) / readers + probing / available

    def _spread_gain(self, tree: Segment, costs: list[tuple[ProbeStep, StepCost]], available: int) -> float:
        """Seconds that are saved; below zero, lost."""
        readers = self._readers(tree.probe, available)
        if readers >= available or not all(cost.replicated for _, cost in costs):
            return 0.0
        probing = sum(cost.probe for _, cost in costs) + self._emit(tree)
        moving = self.units.launch + self._redirected(mask_of_input(tree.probe))
        return probing / readers - (probing / available + moving / readers)

    def _emit(self, segment: Segment) -> float:
        """Making the rows of a segment's result; those of the last segment are the same for all trees."""
        return self.cardinality.rows(segment.mask) * self.units.probe

    def _readers(self, side: Input, available: int) -> int:
        """How many tasks read an input side by side; a segment's result counts as spread."""
        tasks = self.graph.relations[side].tasks if isinstance(side, int) else 0
        return min(tasks, available) or available

    def _redirected(self, mask: int) -> float:
        """Sending the rows of a set to the processors of another partitioning."""
        network = self.cardinality.row_bytes(mask) * self.units.network * self._away()
        return self.cardinality.rows(mask) * (network + self.units.partition)

    def _own_work(self, segment: Segment) -> float:
        total = self._scan_of(segment.probe)
        for step, cost in self._costs(segment):
            total += self._scan_of(step.build) + cost.build + cost.probe
        return total

    def _costs(self, segment: Segment) -> list[tuple[ProbeStep, StepCost]]:
        partitioned_by = UNPARTITIONED
        made: list[tuple[ProbeStep, StepCost]] = []
        for step in steps(self.graph, segment):
            cost = self.join(step.before, mask_of_input(step.build), step.classes, partitioned_by)
            partitioned_by = cost.partitioned_by
            made.append((step, cost))
        return made

    def _scan_of(self, side: Input) -> float:
        return self.scan(side) if isinstance(side, int) else 0.0

    def _away(self) -> float:
        """The share of redirected rows whose place is another processor."""
        return (self.machine.processors - 1) / self.machine.processors


def _power(least: float) -> float:
    """The next power of two, at least one."""
    return float(2 ** ceil(log2(max(least, 1.0))))
