"""Operators that feed each other, as one: groups and inputs are numbered consecutively across operators.

Operator j of a graph with G groups each has the groups j*G to (j+1)*G - 1, and its inputs follow those of the
operators before it. The manager knows only these numbers: it places, moves, spills and cleans up groups of
any operator alike. Each operator's own step knows only its own: `local_orders` and `merged_report` translate
what goes to it and what comes back. A view with one operator is a graph of one, whose numbers are its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spillway.model import GroupSet, Window, all_groups, union
from spillway.state.orders import CleanupBatch, Orders, Report, lineage
from spillway.state.rows import CompactionLimits, Cursor, Int64Array, Pending, Run, group_of
from spillway.state.step import Merges, Operator, WireInput


@dataclass(frozen=True)
class Graph:
    operators: tuple[Operator, ...]
    """Those that feed others before these; the last gives the results of the view."""
    tags: tuple[tuple[int, int], ...]
    """Per input of the view, by its tag on the wire: the operator that takes it in, and as which input."""
    counted: tuple[GroupSet, ...] | None = None
    """Per input, the groups in which a row of it counts as arrived: it may have copies. None: no row has."""

    @classmethod
    def of_one(cls, operator: Operator) -> "Graph":
        return cls((operator,), tuple((0, number) for number in range(len(operator.inputs))))

    @property
    def is_one(self) -> bool:
        """Whether no row goes from one operator to another."""
        return len(self.operators) == 1

    @property
    def operator_groups(self) -> int:
        """How many groups each operator has."""
        return self.operators[0].groups

    @property
    def groups(self) -> int:
        return self.operator_groups * len(self.operators)

    @cached_property
    def inputs(self) -> tuple[WireInput, ...]:
        return tuple(wire for join in self.operators for wire in join.inputs)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        return tuple(window for join in self.operators for window in join.windows)

    @property
    def result_schema(self) -> pa.Schema:
        return self.operators[-1].result_schema

    def with_result_schema(self, schema: pa.Schema) -> "Graph":
        *others, root = self.operators
        return replace(self, operators=(*others, root.with_result_schema(schema)))

    @property
    def waits(self) -> bool:
        """Whether rows wait for the watermark."""
        return any(operator.wait_column is not None for operator in self.operators)

    @property
    def splittable(self) -> bool:
        return all(operator.splittable for operator in self.operators)

    @cached_property
    def group_sets(self) -> tuple[GroupSet, ...]:
        """The groups of each operator."""
        return tuple(self.groups_of(number) for number in range(len(self.operators)))

    @cached_property
    def group_heights(self) -> tuple[int, ...]:
        """Per group, how many operators are between it and the view's results."""
        return tuple(height for height in self.heights for _ in range(self.operator_groups))

    def extra_merges(self, runs: Sequence[Run], limits: CompactionLimits, merges: Merges) -> Merges:
        """What the operators want to merge of their own runs besides `merges`."""
        found: Merges = ()
        for number, operator in enumerate(self.operators):
            first = self.first_input(number)
            mine = [run for run in runs if first <= run.input < first + len(operator.inputs)]
            found += operator.extra_merges(mine, limits, merges)
        return found

    def group_numbers(self, tags: NDArray[np.integer[Any]], hashes: Int64Array) -> Int64Array:
        """The group of each row on the wire."""
        first = np.array([number for number, _ in self.tags])[tags] * self.operator_groups
        groups: Int64Array = first + group_of(hashes, self.operator_groups)
        return groups

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Per join, how many joins are below it, one under the other."""
        levels = [0 for _ in self.operators]
        for number, join in enumerate(self.operators):
            if join.edge is not None:
                parent = join.edge.operator
                levels[parent] = max(levels[parent], levels[number] + 1)
        return tuple(levels)

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Per join, how many joins are between it and the view's results; the root has none."""
        heights = [0 for _ in self.operators]
        for number in reversed(range(len(self.operators))):
            edge = self.operators[number].edge
            if edge is not None:
                heights[number] = heights[edge.operator] + 1
        return tuple(heights)

    def groups_of(self, join: int) -> GroupSet:
        return all_groups(self.operator_groups) << join * self.operator_groups

    def ancestors(self, join: int) -> tuple[int, ...]:
        edge = self.operators[join].edge
        return () if edge is None else (edge.operator, *self.ancestors(edge.operator))

    def operators_of(self, groups: GroupSet) -> tuple[int, ...]:
        """The joins that have some of these groups."""
        return tuple(number for number in range(len(self.operators)) if groups & self.groups_of(number))

    def downstream(self, groups: GroupSet) -> GroupSet:
        """Groups that may still get rows from missing results of these."""
        return union(self.groups_of(up) for join in self.operators_of(groups) for up in self.ancestors(join))

    def first_input(self, join: int) -> int:
        return sum(len(operator.inputs) for operator in self.operators[:join])

    def local_orders(self, orders: Orders, join: int) -> Orders:
        """A processor's orders as one join's step understands them."""
        first, inputs = self.first_input(join), len(self.operators[join].inputs)

        def run(whole: Run) -> Run:
            live, spilled = self._local(whole.live, join), self._local(whole.spilled, join)
            unsaid = self._local(whole.unsaid, join)
            return replace(whole, input=whole.input - first, live=live, spilled=spilled, unsaid=unsaid)

        def queue(entries: Sequence[Pending]) -> tuple[Pending, ...]:
            return tuple(
                replace(entry, input=entry.input - first, groups=self._local(entry.groups, join))
                for entry in entries
                if first <= entry.input < first + inputs
            )

        def batch(ordered: CleanupBatch) -> CleanupBatch:
            return replace(
                ordered, cursor=replace(ordered.cursor, groups=self._local(ordered.cursor.groups, join))
            )

        runs = tuple(run(own) for own in orders.runs if first <= own.input < first + inputs)
        names = {own.name for own in runs}
        cleanup = tuple(
            batch(ordered) for ordered in orders.cleanup if ordered.cursor.groups & self.groups_of(join)
        )
        grows = orders.clean and join in self._growing(orders.cleaned)
        return replace(
            orders,
            groups=self._local(orders.groups, join),
            runs=runs,
            merges=tuple(merge for merge in orders.merges if merge[0] in names),
            pending=queue(orders.pending),
            tier=f"{orders.tier}/{join}",
            free=self._local(orders.free, join),
            cleanup=cleanup,
            cleanup_runs=tuple(
                run(own) for own in orders.cleanup_runs if first <= own.input < first + inputs
            ),
            collects=orders.collects or grows,
            cleaned=0,
            expired=tuple(name for name in orders.expired if name in names),
            keep=self._local(orders.keep, join),
            suspended=self._local(orders.suspended, join),
            suspended_pending=queue(orders.suspended_pending),
            incoming=tuple(run(own) for own in orders.incoming if first <= own.input < first + inputs),
            shared_tier=True,
        )

    def _growing(self, cleaned: GroupSet) -> set[int]:
        """The joins that get rows while these groups are cleaned up."""
        return {up for join in self.operators_of(cleaned) for up in self.ancestors(join)}

    def merged_report(self, reports: Sequence[Report]) -> Report:
        """One processor's reports, one of each join in order, as that of the whole tree."""
        root = reports[-1]

        def counts(of: str) -> dict[int, int]:
            found: dict[int, int] = {}
            for join, report in enumerate(reports):
                found |= {group + join * self.operator_groups: n for group, n in getattr(report, of).items()}
            return found

        def masks(of: str) -> GroupSet:
            return union(
                getattr(report, of) << join * self.operator_groups for join, report in enumerate(reports)
            )

        seconds: dict[str, float] = {}
        for report in reports:
            for phase, value in report.seconds.items():
                seconds[phase] = seconds.get(phase, 0.0) + value
        numbered = list(enumerate(reports))
        return Report(
            processor=root.processor,
            host=root.host,
            executor=root.executor,
            added=tuple(self._global_run(run, join) for join, report in numbered for run in report.added),
            replaced=tuple(
                (name, groups << join * self.operator_groups)
                for join, report in numbered
                for name, groups in report.replaced
            ),
            pending=tuple(
                self._global_pending(entry, join) for join, report in numbered for entry in report.pending
            ),
            files=root.files,
            input_rows=sum(report.input_rows for report in reports),
            probed_rows=sum(report.probed_rows for report in reports),
            results=root.results,
            resident_bytes=sum(report.resident_bytes for report in reports),
            loaded_bytes=sum(report.loaded_bytes for report in reports),
            busy_seconds=sum(report.busy_seconds for report in reports),
            seconds=seconds,
            collected_rows=counts("collected_rows"),
            collected_bytes=counts("collected_bytes"),
            read_bytes=sum(report.read_bytes for report in reports),
            work=sum(report.work for report in reports),
            group_rows=counts("group_rows"),
            group_bytes=counts("group_bytes"),
            group_results=counts("group_results"),
            freed_bytes=sum(report.freed_bytes for report in reports),
            peak_bytes=max(report.peak_bytes for report in reports),
            cursors=tuple(
                self._global_cursor(cursor, join) for join, report in numbered for cursor in report.cursors
            ),
            cleaned=masks("cleaned"),
            restored=masks("restored"),
            latest=self._latest(reports),
            late_rows=sum(report.late_rows for report in reports),
            null_time_rows=sum(report.null_time_rows for report in reports),
            expired_rows=counts("expired_rows"),
            expired_bytes=counts("expired_bytes"),
            lineage=lineage(reports) | self._outputs(root),
            wall_seconds=sum(report.wall_seconds for report in reports),
        )

    def _outputs(self, root: Report) -> dict[int, tuple[int, int, int]]:
        first = (len(self.operators) - 1) * self.operator_groups
        return {first + group: (results, 0, 0) for group, results in root.group_results.items()}

    def _latest(self, reports: Sequence[Report]) -> tuple[int | None, ...]:
        if not self.windows:
            return ()
        return tuple(
            time
            for join, report in zip(self.operators, reports, strict=True)
            for time in (report.latest or (None,) * len(join.inputs))
        )

    def _local(self, groups: GroupSet, join: int) -> GroupSet:
        return groups >> join * self.operator_groups & all_groups(self.operator_groups)

    def _global_run(self, run: Run, join: int) -> Run:
        shift = join * self.operator_groups
        number = run.input + self.first_input(join)
        live, spilled, unsaid = run.live << shift, run.spilled << shift, run.unsaid << shift
        return replace(run, input=number, live=live, spilled=spilled, unsaid=unsaid)

    def _global_pending(self, entry: Pending, join: int) -> Pending:
        groups = entry.groups << join * self.operator_groups
        return replace(entry, input=entry.input + self.first_input(join), groups=groups)

    def _global_cursor(self, cursor: Cursor, join: int) -> Cursor:
        return replace(cursor, groups=cursor.groups << join * self.operator_groups)
