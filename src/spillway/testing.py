"""A testing kit: the real epoch engine without Spark.

`LocalCluster` runs the same orders, steps and commits as a Spark job does, one processor after the other in
this process. Tests use it to try histories (epoch sizes, limits, restarts, lost memory) by the thousand.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.manager.engine import Files
from spillway.manager.rotation import Swap
from spillway.manager.spill import Spill
from spillway.model.group_set import group_set
from spillway.state.attempt import Place
from spillway.state.group import group_of
from spillway.state.manifest import Manifest
from spillway.state.operator import HASH_WIRE_COLUMN
from spillway.state.orders import Orders, Report
from spillway.state.step import StatefulOperator, run_step
from spillway.state.storage import Storage


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """Executes the epochs of one engine in this process."""

    operator: StatefulOperator
    batch: pa.RecordBatch | None = None
    """The input of the epoch, in wire format."""
    batch_rows: int | None = None
    """Cut the input into batches of so many rows, as Spark does; None: one batch."""

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        return [self._step(one) for one in orders]

    def _step(self, orders: Orders) -> Report:
        place = Place("localhost", "local", uuid.uuid4().hex[:8])
        batches: list[pa.RecordBatch] = []
        if self.batch is not None:
            groups = group_of(self.batch.column(HASH_WIRE_COLUMN).to_numpy(), self.operator.groups)
            mine = np.array([orders.groups >> int(group) & 1 for group in groups], dtype=np.bool_)
            table = pa.Table.from_batches([self.batch if mine.all() else self.batch.filter(pa.array(mine))])
            batches = table.to_batches(max_chunksize=self.batch_rows)
        return run_step(orders, self.operator, place, batches)


class ListSink:
    """Keeps committed results as tables in this process; a repeated epoch is ignored."""

    def __init__(self, staging: str) -> None:
        self.staging: str | None = staging
        self.epochs: dict[int, list[pa.Table]] = {}

    def last_committed(self, query_id: str) -> int:  # noqa: ARG002 - one query
        return max(self.epochs, default=-1)

    def commit_files(self, sequence: int, files: Files) -> None:
        if sequence in self.epochs or self.staging is None:
            return
        storage = Storage(self.staging)
        self.epochs[sequence] = [pq.read_table(storage.open_input(name)) for name, _, _ in files]

    def rows(self) -> list[tuple[object, ...]]:
        tables = [table for epoch in self.epochs.values() for table in epoch]
        return [tuple(row.values()) for table in tables for row in table.to_pylist()]


class ScriptedSwaps:
    """Suspends and resumes scripted groups before each epoch."""

    def __init__(self, script: list[int]) -> None:
        self.script = script

    def decide(
        self,
        manifest: Manifest,
        victims: list[Spill],
        resident: dict[int, int],  # noqa: ARG002 - the script does not depend on memory
        *,
        forced: bool,
    ) -> tuple[list[Swap], list[Spill]]:
        fixed = manifest.unfinished_groups
        if forced:
            back = manifest.suspended & manifest.waiting_groups
            return [Swap(0, 0, back & -back, 1, 1, "forced")], victims
        chosen = self.script.pop() if self.script else 0
        there = group_set(g for g, state in manifest.groups.items() if state.rows)
        out = chosen & there & ~manifest.suspended & ~fixed
        back = chosen & manifest.suspended
        return ([Swap(0, out, back, 1, 1, "scripted")] if out or back else []), victims

    def observe(self, epoch: int, swaps: object, seconds: float) -> None:
        """The script does not depend on what happens."""


class ScriptedSpills:
    """Ends the generations of scripted groups before each epoch, whatever the memory."""

    def __init__(self, script: list[int]) -> None:
        self.script = script

    def decide(
        self,
        manifest: Manifest,
        resident_bytes: dict[int, int],  # noqa: ARG002 - the script does not depend on memory
        spare: int = 0,  # noqa: ARG002
        postponed: frozenset[int] = frozenset(),  # noqa: ARG002
    ) -> list[Spill]:
        chosen = self.script.pop() if self.script else 0
        groups = [g for g, state in manifest.groups.items() if state.rows]
        fixed = manifest.unfinished_groups | manifest.suspended
        mask = group_set(g for g in groups if chosen >> g & 1) & ~fixed
        return [Spill(0, mask, 1, 1, "scripted")] if mask else []

    def observe(self, group_results: dict[int, int]) -> None:
        """The script does not depend on what happens."""
