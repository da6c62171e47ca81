"""Decisions depend on reports, and on the clock and the budgets that the engine is given."""

import ast
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import spillway.manager
from spillway.manager.budget import Budget, Budgets
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.file import Journal
from spillway.manager.relocation.protocol import RelocationLimits
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import Orders
from spillway.state.orders.report import Report
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster, ManualClock

GROUPS = 8
GRAPH = Graph.of_one(
    JoinOperator(
        inputs=tuple(WireInput(name, ("id",), ("s0",)) for name in "ab"),
        outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
        residual=None,
        key_columns=((), ()),
        groups=GROUPS,
        result_schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]),
    )
)
IDS = np.arange(640)
BATCH = pa.RecordBatch.from_pydict(
    {
        "t": (IDS % 2).astype(np.int8),
        "h": (IDS.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64),
        "s0": IDS,
    }
)


@dataclass
class SimulatedCluster:
    """Real steps whose times are invented: processor 1 is four times as slow. An epoch takes a second."""

    clock: ManualClock
    epoch_seconds: float = 1.0
    pause_seconds: float = 0.0
    """How long the machine's own clock goes on in an epoch."""

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        time.sleep(self.pause_seconds)
        self.clock.now += self.epoch_seconds
        reports = LocalCluster(GRAPH, BATCH)(orders)
        return [replace(report, wall_seconds=0.1 + 0.3 * report.processor) for report in reports]


@dataclass
class Run:
    directory: Path
    adapt: str = "flux-load"
    budgets: Budgets | None = None
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        limits = RelocationLimits(restart_epochs=0)
        config = EngineConfig(2, GROUPS, str(self.directory / "tier"), adapt=self.adapt, relocation=limits)
        storage, sink = Storage(str(self.directory / "state")), ListSink(str(self.directory / "staging"))
        self.engine = Engine(config, GRAPH, "q", storage, sink, Journal(None), self.clock, self.budgets)

    def epochs(self, count: int, **cluster: float) -> list[EpochEntry]:
        first = self.engine.manifest.batch_id + 1
        execute = SimulatedCluster(self.clock, **cluster)
        return [self.engine.run_epoch(execute, batch_id) for batch_id in range(first, first + count)]


def decisions(entries: list[EpochEntry]) -> list[Any]:
    return [(entry.relocation, entry.spills, entry.time, entry.seconds) for entry in entries]


def test_the_machines_own_time_changes_no_decision(tmp_path: Path) -> None:
    quick = Run(tmp_path / "quick").epochs(8)
    slow = Run(tmp_path / "slow").epochs(8, pause_seconds=0.02)
    assert decisions(quick) == decisions(slow)
    assert sum(len(entry.relocation.switched) for entry in quick) >= 1
    assert [entry.time for entry in quick] == list(range(8))
    assert {entry.seconds.total for entry in quick} == {1.0}


def test_while_the_clock_stands_still_no_round_ends(tmp_path: Path) -> None:
    run = Run(tmp_path)
    still = run.epochs(6, epoch_seconds=0.0)
    assert not any(entry.relocation.begun for entry in still)
    assert any(entry.relocation.begun for entry in run.epochs(3))


def test_budgets_are_asked_for_in_every_epoch(tmp_path: Path) -> None:
    budgets = Budgets((Budget(64 << 20),))
    run = Run(tmp_path, "none", budgets)
    assert not any(entry.spills for entry in run.epochs(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "__post_init__", lambda budget: None)  # any size will do
        budgets.each = (Budget(64 << 20), Budget(1000))
    (entry,) = run.epochs(1)
    assert [spill.processor for spill in entry.spills] == [1]
    assert [part.budget_bytes for part in entry.processors] == [64 << 20, 1000]
    assert entry.budget_bytes == 64 << 20


def test_only_one_module_of_the_manager_reads_the_machines_clock() -> None:
    package = Path(spillway.manager.__file__).parent
    reading = {
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        if {"time", "datetime"} & {getattr(node, "module", None), *(name.name for name in node.names)}
    }
    assert reading == {"clock.py"}
