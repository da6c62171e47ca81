"""One processor's part of an epoch: `run_step` for one operator, `StageStep` for those of a stage.

A stage runs the operators of some levels. Rows of the view's inputs, and rows from operators of earlier
stages, are in its inbox; rows for operators of later stages go out in parcels. What a processor has to
report travels with it from stage to stage.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spillway.model import from_text, members, to_text
from spillway.state.graph.inbox import Inbox
from spillway.state.graph.kinds import OperatorStep, step_of
from spillway.state.graph.level_message import LevelMessage
from spillway.state.graph.outgoing import Outgoing
from spillway.state.graph.outlet import GraphOutlet, PlacedEdge
from spillway.state.graph.routing import Routing
from spillway.state.graph.translation import local_orders
from spillway.state.memory import MemoryTier, bound_allocator, give_back
from spillway.state.orders import NO_BOUND, Orders, Report
from spillway.state.step import Allocated, Operator, Outlet, TaskAttempt


def placement_of(orders: Sequence[Orders]) -> tuple[int, ...]:
    """The processor of each group."""
    owners = {group: mine.processor for mine in orders for group in members(mine.groups)}
    return tuple(owners[group] for group in range(len(owners)))


@dataclass(slots=True)
class StageStep:
    """One processor's part of one stage."""

    routing: Routing
    stage: int
    orders: Orders
    attempt: TaskAttempt

    def run(self, inbox: Inbox, outgoing: Outgoing | None) -> LevelMessage:
        """Run the operators of the stage; what this processor has to report by its end. The last stage has
        nothing outgoing."""
        graph = self.routing.graph
        before = LevelMessage() if self.stage == 0 else inbox.own_message()
        reports = dict(before.reports)
        advanced = any(from_text(Report, report).probed_rows for report in reports.values())
        if self.stage == 0 and not graph.is_one:
            self._free()
        for number in self.routing.operators_of(self.stage):
            operator, orders, mine = graph.operators[number], self.orders, self.attempt
            rows = inbox.rows_of(number)
            if not graph.is_one:
                orders = replace(local_orders(graph, orders, number), advances=not advanced)
                mine = replace(mine, id=f"{mine.id}-{number}")
            report = run_step(orders, operator, mine, rows, self._outlet(number, inbox, outgoing))
            advanced |= report.probed_rows > 0
            for _ in rows:  # a clean-up does not look at its input
                pass
            reports[number] = to_text(report)
        inbox.finish()
        return LevelMessage(reports, before.input_rows + inbox.arrived, before.seen | inbox.seen)

    def _outlet(self, number: int, inbox: Inbox, outgoing: Outgoing | None) -> GraphOutlet | None:
        routing, graph = self.routing, self.routing.graph
        if graph.is_final(number):
            return None

        def send(processor: int, operator: int, batch: pa.RecordBatch) -> None:
            stage = routing.stage_of(operator)
            if stage == self.stage:
                inbox.put(operator, batch)
            else:
                assert outgoing is not None
                outgoing.write(stage * routing.processors + processor, operator, batch)

        edges = tuple(
            PlacedEdge(edge, graph.operators[edge.consumer], routing.placement_of(edge.consumer))
            for edge in graph.edges
            if edge.producer == number
        )
        return GraphOutlet(edges, tuple(root for root in graph.roots if root.producer == number), send)

    def _free(self) -> None:
        """Give back what leaves memory in all operators, before the first of them takes more."""
        graph = self.routing.graph
        for number in range(len(graph.operators)):
            orders = local_orders(graph, self.orders, number)
            if orders.free:
                tier = MemoryTier(orders.tier, graph.operators[number].groups)
                tier.keep_only((*orders.runs, *orders.incoming))
                tier.open()
                tier.free(orders.free)
                tier.settle()


def run_step(
    orders: Orders,
    operator: Operator,
    attempt: TaskAttempt,
    batches: Iterable[pa.RecordBatch],
    outlet: Outlet | None = None,
) -> Report:
    """One operator's part, measured; with an outlet its results are input of another operator."""
    started = time.perf_counter()
    round_bytes = orders.limits.round_bytes
    if round_bytes < NO_BOUND:
        bound_allocator(round_bytes // 8)
    allocated = Allocated()
    before = allocated()
    step = step_of(orders, operator, attempt, outlet)
    report = _carried_out(step, orders, batches)
    del step  # its memory does not stay
    report = _without(report, allocated() - before)
    if round_bytes < NO_BOUND:
        give_back()
    if orders.row_seconds:
        report = _served(report, orders.row_seconds, started)
    return replace(report, wall_seconds=time.perf_counter() - started)


def _carried_out(step: OperatorStep, orders: Orders, batches: Iterable[pa.RecordBatch]) -> Report:
    if orders.collects:
        return step.collect(batches)
    return step.clean() if orders.clean else step.run(batches)


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
