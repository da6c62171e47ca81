"""What policies that balance load are told: time that is not idle, rows that were served, rounds that end."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.manager.config import Emulation, EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import FILE_NAME, Journal, read_journal
from spillway.manager.relocation.protocol import RelocationLimits, RelocationManager
from spillway.manager.relocation.statistics import PlacementStatistics
from spillway.plan.expression.nodes import ColumnRef
from spillway.policy.placement.registry import placement_policy
from spillway.policy.placement.rounds import round_is_over
from spillway.policy.placement.snapshot import PROCESSOR, WALL
from spillway.policy.placement.suggestion import Move, Suggestions
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.log.manifest import Manifest
from spillway.state.orders.report import Report
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster


def report(processor: int, wall: float, busy: float, rows: dict[int, int] | None = None) -> Report:
    return Report(
        processor, "host", "0", (), (), (), {}, 0, 0, 0, 0, 0, busy, {}, rows or {}, wall_seconds=wall
    )


def flux(name: str = "flux-load") -> RelocationManager:
    return RelocationManager(placement_policy(name), RelocationLimits(restart_epochs=0))


def test_time_that_an_external_process_takes_counts_as_load() -> None:
    """Both use the processor alike, but one has to share it: the other waits for it half of the time."""
    for signal, wanted in ((WALL, [0.5, 1.0]), (PROCESSOR, [0.25, 0.25])):
        statistics = PlacementStatistics(signal)
        for _ in range(3):
            statistics.observe([report(0, 1.0, 0.5), report(1, 2.0, 0.5)], 4.0)
        made = statistics.snapshot(Manifest(3, 0, (0, 1)), {0: None, 1: None}, flux(), 10.0)
        assert [processor.utilisation for processor in made.processors] == wanted
        assert made.collected_seconds == 12.0, "the time of the driver counts for rounds, not as idle"


@given(
    st.lists(st.floats(0.001, 60.0), min_size=1, max_size=3),
    st.floats(0.0, 4000.0),
    st.integers(0, 100),
)
def test_every_round_ends_once_so_much_time_has_passed(
    epochs: list[float], collection_seconds: float, quiet: int
) -> None:
    """Whatever the lengths of the epochs, and however long moving took."""
    statistics, manager = PlacementStatistics(), flux()
    manager.collection_seconds = collection_seconds
    manifest = Manifest(3, 0, (0, 1))
    passed = 0.0
    for number in range(quiet + 4000 * 1000):
        snapshot = statistics.snapshot(manifest, {0: None, 1: None}, manager, passed)
        if round_is_over(snapshot, manager.policy.parameters):  # type: ignore[arg-type]
            break
        assert passed <= max(collection_seconds, 0.25) + 1e-6
        if number > 100:  # the rest of the round in one epoch
            epochs = [max(collection_seconds, 0.25)]
        seconds = epochs[number % len(epochs)]
        statistics.observe([report(0, seconds, 0.0), report(1, seconds, 0.0)], seconds)
        passed += seconds
    assert len(statistics.samples) <= 30


def test_any_move_sets_how_long_the_next_round_collects() -> None:
    """Also one that a user asked for, or a change of the number of processors; from the first that began."""
    manager, statistics = flux(), PlacementStatistics()
    manifest, budgets = Manifest(3, 0, (0, 0, 1)), {0: None, 1: None}
    snapshot = statistics.snapshot(manifest, budgets, manager, 100.0)
    both = Suggestions((Move(0b1, 0, 1, 0, "resize"), Move(0b10, 0, 1, 0, "resize")))
    assert len(manager.request(both, snapshot).begun) == 2
    first = manager.plan(snapshot, pinned=0b10)
    manager.observe(first, 110.0)
    assert len(manager.moves) == 1
    manager.observe(manager.plan(snapshot), 131.0)
    assert manager.moves == ()
    assert manager.collection_seconds == 31.0


@pytest.mark.parametrize("signal", [WALL, PROCESSOR])
def test_the_journal_says_which_signal_was_used_and_a_slow_step_is_busier(
    tmp_path: Path, signal: str
) -> None:
    inputs = tuple(WireInput(name, ("id",), ("s0",)) for name in "ab")
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    plan = JoinOperator(inputs, (ColumnRef(0, 0), ColumnRef(1, 0)), None, ((), ()), 8, schema)
    ids = np.arange(64)
    hashes = (ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)
    batch = pa.RecordBatch.from_pydict({"t": (ids % 2).astype(np.int8), "h": hashes, "s0": ids})
    config = EngineConfig(
        2, 8, str(tmp_path / "tier"), load_signal=signal, emulation=Emulation(1e-3, (1.0, 0.25))
    )
    with Journal(tmp_path / FILE_NAME) as journal:
        storage = Storage(str(tmp_path / "state"))
        engine = Engine(config, Graph.of_one(plan), "q", storage, ListSink(str(tmp_path / "s")), journal)
        engine.run_epoch(LocalCluster(Graph.of_one(plan), batch), 0)
        snapshot = engine.controller._snapshot(engine.manifest)
    (entry,) = read_journal(tmp_path / FILE_NAME)
    assert entry.load_signal == signal
    fast, slow = entry.processors
    assert slow.wall_seconds > 1.5 * fast.wall_seconds > 0
    assert snapshot.processors[1].utilisation > 1.5 * snapshot.processors[0].utilisation > 0
