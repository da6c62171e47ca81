"""One processor's part of an epoch of a tree: level by level, with an exchange of rows after each.

All input of the view arrives at the lowest level, each row at the processor of its join's group; rows for
joins of higher levels wait there in files. After a level every processor tells every other which files it
has for it.

Invariant: who reads a file also says which attempt wrote it. An attempt that Spark repeats may have parked
other rows, so an epoch counts only if all its readers read the same attempt of each writer
(`consistent_reports`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spillway.errors import StateError
from spillway.model import members
from spillway.state.graph.exchange import DIRECTORY, ExchangeFile, Outlet, read_exchange
from spillway.state.graph.graph import Graph
from spillway.state.graph.kinds import run_step
from spillway.state.graph.level_message import LevelMessage
from spillway.state.memory import MemoryTier
from spillway.state.orders import Orders, Report
from spillway.state.rows import Int64Array, flags, group_of
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN, TaskAttempt, WireInput
from spillway.state.storage import Storage

Int8Array = np.typing.NDArray[np.int8]
MOST_SLICES = 16
"""Into more pieces than this, rows of a batch are not cut: they are collected per join."""


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
    owners = {group: one.processor for one in orders for group in members(one.groups)}
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
        advanced = any(Report.from_json(report).probed_rows for report in reports.values())
        arrived = _Arrived(self, storage, batches) if level == 0 else None
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
            reports[join] = report.to_json()
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

    def _outlet(self, join: int, storage: Storage) -> Outlet | None:
        edge = self.tree.operators[join].edge
        if edge is None:
            return None
        first = edge.operator * self.tree.operator_groups
        placement = self.placement[first : first + self.tree.operator_groups]
        return Outlet(storage, self.tree.operators[edge.operator], placement)

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


class _Arrived:
    """The rows that Spark brought: those of one join as they come, those of the others through files."""

    def __init__(self, step: TreeStep, storage: Storage, batches: Iterable[pa.RecordBatch]) -> None:
        self._tree = step.tree
        self._storage = storage
        self._batches = iter(batches)
        self._rows = 0
        stem = f"{step.orders.sequence:012d}-{step.orders.processor:04d}-{step.attempt.id}"
        self._writers = {
            join: ExchangeFile(storage, f"{DIRECTORY}/{stem}-in-{join}.arrow")
            for join in range(len(step.tree.operators))
        }
        self._ended = False
        tags = step.tree.tags
        self._join_of = np.array([join for join, _ in tags], dtype=np.int64)
        self._input_of = np.array([number for _, number in tags], dtype=np.int8)
        counted, groups = step.tree.counted, step.tree.operator_groups
        self._counted = None if counted is None else np.array([flags(mask, groups) for mask in counted])

    def rows_of(self, join: int) -> Iterator[pa.RecordBatch]:
        """The rows of one join; while the first is asked for, those of the others are put aside."""
        if not self._ended:
            yield from self._sorted_out(join)
            return
        writer = self._writers[join]
        if writer.rows:
            yield from read_exchange(self._storage, [writer.name])

    def finish(self) -> int:
        """How many rows came; all of them are read by now."""
        for _ in self._batches:
            raise StateError("rows of an epoch came that no join has read; this is a bug of Spillway")
        return self._rows

    @property
    def later(self) -> dict[int, str]:
        """Files for joins of higher levels."""
        levels = self._tree.levels
        return {j: one.name for j, one in self._writers.items() if levels[j] > 0 and one.rows}

    def _sorted_out(self, join: int) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            tags = batch.column(TAG_COLUMN).to_numpy()
            self._rows += self._arrived(batch, tags)
            owners = self._join_of[tags]
            for other, rows in by_owner(owners):
                piece = self._piece(batch, tags, rows, other)
                if other == join:
                    yield piece
                else:
                    self._writers[other].write(piece)
                del piece, rows
            del batch, tags, owners  # before the next one is there
        for writer in self._writers.values():
            writer.close()
        self._ended = True

    def _arrived(self, batch: pa.RecordBatch, tags: Int8Array) -> int:
        """How many rows a batch has, of copies the first ones only."""
        if self._counted is None:
            return int(batch.num_rows)
        groups = group_of(batch.column(HASH_WIRE_COLUMN).to_numpy(), self._tree.operator_groups)
        return int(self._counted[tags, groups].sum())

    def _piece(
        self, batch: pa.RecordBatch, tags: Int8Array, rows: slice | Int64Array, join: int
    ) -> pa.RecordBatch:
        """Some rows of a batch as one join knows them: its own numbers of inputs, and only its columns."""
        inputs = self._tree.operators[join].inputs
        names = [name for name in batch.schema.names if name == TAG_COLUMN or name in _wanted(inputs)]
        columns = batch.select(names)
        if isinstance(rows, slice):
            piece = columns.slice(rows.start, rows.stop - rows.start)
        else:
            piece = columns.take(pa.array(rows))
        numbers = pa.array(self._input_of[tags[rows]])
        return piece.set_column(piece.schema.get_field_index(TAG_COLUMN), TAG_COLUMN, numbers)


def by_owner(owners: Int64Array) -> Iterator[tuple[int, slice | Int64Array]]:
    """Rows by the join that they are for. Rows of one source mostly come together: then as they lie."""
    ends = [*(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist(), len(owners)]
    if len(ends) <= MOST_SLICES:
        for start, end in pairwise([0, *ends]):
            if start < end:
                yield int(owners[start]), slice(start, end)
        return
    for owner in np.unique(owners):
        yield int(owner), np.flatnonzero(owners == owner)


def _wanted(inputs: Sequence[WireInput]) -> set[str]:
    return {HASH_WIRE_COLUMN, *(slot for one in inputs for slot in one.slots)}
