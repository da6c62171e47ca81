"""One processor's part of an epoch: `run_step` for one operator, `TreeStep` for several, level by level.

All input of the view arrives at the lowest level, each row at the processor of its join's group; rows for
joins of higher levels wait there in files. After a level every processor tells every other which files it
has for it, so rows are exchanged.

Invariant: who reads a file also says which attempt wrote it. An attempt that Spark repeats may have parked
other rows, so an epoch counts only if all its readers read the same attempt of each writer
(`consistent_reports`).
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spillway.model import from_text, members, to_text
from spillway.state.graph.arrival import Arrival
from spillway.state.graph.exchange import ExchangeOutlet, read_exchange
from spillway.state.graph.graph import Graph
from spillway.state.graph.kinds import step_of
from spillway.state.graph.level_message import LevelMessage
from spillway.state.memory import MemoryTier, bound_allocator, give_back
from spillway.state.orders import NO_BOUND, Orders, Report
from spillway.state.step import Allocated, Operator, TaskAttempt
from spillway.state.storage import Storage


def fused_levels(orders: Sequence[Orders], tree: Graph) -> list[list[int]]:
    """The levels of each stage: as long as all groups so far are on one processor, no row has to travel."""
    placement = placement_of(orders)
    stages = [[0]]
    for level in range(1, max(tree.levels) + 1):
        joins = [join for join, at in enumerate(tree.levels) if at <= level]
        owners = {placement[group] for join in joins for group in members(tree.groups_of(join))}
        if len(owners) == 1:
            stages[-1].append(level)
        else:
            stages.append([level])
    return stages


def placement_of(orders: Sequence[Orders]) -> tuple[int, ...]:
    """The processor of each group."""
    owners = {group: mine.processor for mine in orders for group in members(mine.groups)}
    return tuple(owners[group] for group in range(len(owners)))


@dataclass(slots=True)
class TreeStep:
    """One processor's part of some levels of an epoch."""

    tree: Graph
    orders: Orders
    placement: tuple[int, ...]
    processors: int
    attempt: TaskAttempt

    def run(
        self, level: int, inbox: LevelMessage, batches: Iterable[pa.RecordBatch]
    ) -> dict[int, LevelMessage]:
        """Do the joins of a level; what to tell whom. Only the lowest level gets batches."""
        storage = Storage(self.orders.state)
        files = {join: list(names) for join, names in inbox.files.items()}
        reports = dict(inbox.reports)
        advanced = any(from_text(Report, report).probed_rows for report in reports.values())
        stem = f"{self.orders.sequence:012d}-{self.orders.processor:04d}-{self.attempt.id}"
        arrived = Arrival(self.tree, storage, stem, batches) if level == 0 else None
        if level == 0:
            self._free()
        sent: dict[int, dict[int, list[str]]] = {}
        for join in (number for number, at in enumerate(self.tree.levels) if at == level):
            rows = read_exchange(storage, files.pop(join, []))
            if arrived is not None:
                rows = arrived.rows_of(join)
            operator, outlet = self.tree.operators[join], self._outlet(join, storage)
            mine = replace(self.attempt, id=f"{self.attempt.id}-{join}")
            orders = replace(self.tree.local_orders(self.orders, join), advances=not advanced)
            report = run_step(orders, operator, mine, rows, outlet)
            advanced |= report.probed_rows > 0
            for _ in rows:  # a clean-up does not look at its input
                pass
            reports[join] = to_text(report)
            if outlet is not None and operator.edge is not None:
                for target, name in outlet.sent.items():
                    sent.setdefault(target, {}).setdefault(operator.edge.operator, []).append(name)
        input_rows = inbox.input_rows
        if arrived is not None:
            input_rows += arrived.finish()
            for join, name in arrived.later.items():
                files.setdefault(join, []).append(name)
        for join, names in files.items():  # for joins of higher levels, here
            sent.setdefault(self.orders.processor, {}).setdefault(join, []).extend(names)
        seen = inbox.seen | {(level, self.orders.processor, self.attempt.id)}
        return {
            target: LevelMessage(
                {join: tuple(names) for join, names in sent.get(target, {}).items()},
                reports if target == self.orders.processor else {},
                input_rows if target == self.orders.processor else 0,
                seen,
            )
            for target in range(self.processors)
        }

    def _outlet(self, join: int, storage: Storage) -> ExchangeOutlet | None:
        edge = self.tree.operators[join].edge
        if edge is None:
            return None
        first = edge.operator * self.tree.operator_groups
        placement = self.placement[first : first + self.tree.operator_groups]
        return ExchangeOutlet(storage, self.tree.operators[edge.operator], placement)

    def _free(self) -> None:
        """Give back what leaves memory in all joins, before the first of them takes more."""
        for join in range(len(self.tree.operators)):
            orders = self.tree.local_orders(self.orders, join)
            if orders.free:
                tier = MemoryTier(orders.tier, self.tree.operator_groups)
                tier.keep_only((*orders.runs, *orders.incoming))
                tier.open()
                tier.free(orders.free)
                tier.settle()


def run_step(
    orders: Orders,
    operator: Operator,
    attempt: TaskAttempt,
    batches: Iterable[pa.RecordBatch],
    outlet: ExchangeOutlet | None = None,
) -> Report:
    """One operator's part, measured; with an outlet its results are input of another operator."""
    started = time.perf_counter()
    round_bytes = orders.limits.round_bytes
    if round_bytes < NO_BOUND:
        bound_allocator(round_bytes // 8)
    allocated = Allocated()
    before = allocated()
    step = step_of(orders, operator, attempt, outlet)
    report = step.clean() if orders.clean else step.run(batches)
    del step  # its memory does not stay
    report = _without(report, allocated() - before)
    if round_bytes < NO_BOUND:
        give_back()
    if orders.row_seconds:
        report = _served(report, orders.row_seconds, started)
    return replace(report, wall_seconds=time.perf_counter() - started)


def _without(report: Report, stays_bytes: int) -> Report:
    """The report without what stays allocated when the step is gone: tables of the interpreter that grew.

    Such a table (of interned strings, for example) takes megabytes, and grows once in the life of a process.
    """
    peak = report.peak_bytes - max(0, stays_bytes)
    return replace(report, peak_bytes=max(report.resident_bytes, peak))


def _served(report: Report, row_seconds: float, started: float) -> Report:
    """The report of a processor that is as slow as an experiment says."""
    needed = report.probed_rows * row_seconds
    time.sleep(max(0.0, started + needed - time.perf_counter()))
    return replace(report, busy_seconds=max(report.busy_seconds, needed))
