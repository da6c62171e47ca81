"""Every spill policy under a real budget, with state several times its size: the whole answer, none twice.

The engine, its steps, state and policies are the real ones; only Spark is not there.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spillway.manager.budget import Budget
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import FILE_NAME, Journal, read_journal
from spillway.manager.relocation.protocol import RelocationLimits
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.join.reference import join
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster, ManualClock

pytestmark = pytest.mark.slow

MEMORY_BYTES = 4 << 20
TIMES_MEMORY = 1.5
ROWS, EPOCHS, GROUPS, WIDTH_BYTES = 2_400, 3, 16, 3_000
"""Rows of all inputs."""
POLICIES = ("least-productive", "least-recent", "most-productive", "random", "recent-history")
MIX = np.uint64(0x9E3779B97F4A7C15)


def operator(inputs: int) -> JoinOperator:
    return JoinOperator(
        inputs=tuple(WireInput(f"s{number}", ("id", "p"), ("s0", "s1")) for number in range(inputs)),
        outputs=tuple(ColumnRef(number, 0) for number in range(inputs)),
        residual=None,
        key_columns=((),) * inputs,
        groups=GROUPS,
        result_schema=pa.schema([(f"id{number}", pa.int64()) for number in range(inputs)]),
    )


@dataclass(frozen=True)
class Input:
    """Random rows, each key once per input on average."""

    inputs: int
    rows: int = ROWS
    tags: Any = field(init=False)
    keys: Any = field(init=False)

    def __post_init__(self) -> None:
        chance = np.random.default_rng(4)
        object.__setattr__(self, "tags", chance.integers(0, self.inputs, self.rows))
        object.__setattr__(self, "keys", chance.integers(1, self.rows // self.inputs + 1, self.rows))

    def batches(self, epochs: int) -> list[pa.RecordBatch]:
        whole = pa.table(
            {
                "t": pa.array(self.tags.astype(np.int8)),
                "h": pa.array((self.keys.astype(np.uint64) * MIX).view(np.int64)),
                "s0": np.arange(self.rows),
                "s1": [f"{number}".ljust(WIDTH_BYTES) for number in range(self.rows)],
            }
        )
        share = self.rows // epochs
        parts = (whole.slice(epoch * share, share) for epoch in range(epochs))
        return [part.combine_chunks().to_batches()[0] for part in parts]

    def wanted(self) -> Counter[tuple[int, ...]]:
        rows = [
            [{"id": int(row), "k": int(self.keys[row])} for row in np.flatnonzero(self.tags == number)]
            for number in range(self.inputs)
        ]
        return Counter(tuple(row["id"] for row in found) for found in join(rows, lambda _, row: row["k"]))


def run(engine: Engine, batches: Sequence[pa.RecordBatch]) -> None:
    """All epochs, and the clean-up at the end."""
    graph, budget = engine.graph, engine.config.budget
    assert budget is not None
    batch_rows = budget.limits(engine.config.limits, len(graph.inputs)).round_bytes // WIDTH_BYTES
    for epoch, batch in enumerate(batches):
        engine.run_epoch(LocalCluster(graph, batch, batch_rows), epoch)
        while engine.has_pending:
            engine.run_epoch(LocalCluster(graph), None)
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(graph))


@pytest.mark.parametrize(
    ("policy", "inputs"),
    [*((policy, 3) for policy in POLICIES), ("least-productive", 5), ("recent-history", 5)],
)
def test_results_at_run_time_and_in_clean_up_add_up_to_the_answer(
    quick_directory: Callable[[], Path], policy: str, inputs: int
) -> None:
    plan, directory, given = operator(inputs), quick_directory(), Input(inputs)
    config = EngineConfig(1, GROUPS, str(directory / "tier"), budget=Budget(MEMORY_BYTES), spill=policy)
    sink = ListSink(str(directory / "staging"))
    with Journal(directory / FILE_NAME) as journal:
        engine = Engine(config, Graph.of_one(plan), "q", Storage(str(directory / "state")), sink, journal)
        run(engine, given.batches(EPOCHS))
    epochs = list(read_journal(directory / FILE_NAME))
    durable = sum(path.stat().st_size for path in (directory / "state" / "runs").iterdir())
    assert durable >= TIMES_MEMORY * MEMORY_BYTES
    assert {spill.reason for entry in epochs for spill in entry.spills} == {policy}
    reports = [part for entry in epochs for part in entry.processors]
    assert max(part.resident_bytes for part in reports) <= MEMORY_BYTES
    assert max(part.peak_bytes for part in reports) <= MEMORY_BYTES
    wanted = given.wanted()
    assert Counter(sink.rows()) == wanted
    counters = engine.manifest.counters
    assert counters.results_cleanup > 0
    assert counters.results_runtime > 0 or inputs == 5
    assert counters.results_runtime + counters.results_cleanup == wanted.total()


def test_groups_move_to_a_full_processor_which_makes_room_and_the_budget_holds(
    quick_directory: Callable[[], Path],
) -> None:
    """Five of eight groups are on the first of two processors, and both are full before any may move."""
    plan, directory, given = operator(2), quick_directory(), Input(2, 4_800)
    config = EngineConfig(
        2,
        GROUPS,
        str(directory / "tier"),
        budget=Budget(MEMORY_BYTES),
        adapt="flux-memory",
        policy={"minimum_collection_seconds": 0.0},
        distribution=(5.0, 3.0),
        relocation=RelocationLimits(restart_epochs=8),
    )
    sink = ListSink(str(directory / "staging"))
    with Journal(directory / FILE_NAME) as journal:
        engine = Engine(
            config,
            Graph.of_one(plan),
            "q",
            Storage(str(directory / "state")),
            sink,
            journal,
            ManualClock(tick_seconds=1e-3),
        )
        run(engine, given.batches(12))
    epochs = list(read_journal(directory / FILE_NAME))
    begun = [move for entry in epochs for move in entry.relocation.begun]
    completed = {move.number for entry in epochs for move in entry.relocation.switched}
    assert any(move.makes_room and move.bytes and move.number in completed for move in begun)
    for entry in epochs:
        making = {move.receiver for move in entry.relocation.begun if move.makes_room}
        assert making <= {spill.processor for spill in entry.spills}, "room is made at once"
    reports = [part for entry in epochs for part in entry.processors]
    assert max(part.resident_bytes for part in reports) <= MEMORY_BYTES
    assert Counter(sink.rows()) == given.wanted()
