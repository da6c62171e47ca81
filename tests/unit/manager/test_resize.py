"""Another number of processors under a budget, without Spark: what had to leave memory comes back."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from spillway.manager.budget import Budget
from spillway.manager.cleanup import Cleaning
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.join.reference import join
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

GROUPS, ROWS, EPOCHS, RESIZED, WIDTH_BYTES = 24, 4_800, 48, 30, 3_000
BUDGET = Budget(4 << 20)
MIX = np.uint64(0x9E3779B97F4A7C15)


def test_new_processors_are_filled_and_what_was_missing_does_not_wait_for_the_end(
    quick_directory: Callable[[], Path],
) -> None:
    """Two processors spill; six of them have room for everything."""
    directory = quick_directory()
    plan = JoinOperator(
        inputs=tuple(WireInput(name, ("id", "p"), ("s0", "s1")) for name in "ab"),
        outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
        residual=None,
        key_columns=((), ()),
        groups=GROUPS,
        result_schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]),
    )
    chance = np.random.default_rng(4)
    tags, keys = chance.integers(0, 2, ROWS), chance.integers(1, ROWS // 2, ROWS)
    whole = pa.table(
        {
            "t": pa.array(tags.astype(np.int8)),
            "h": pa.array((keys.astype(np.uint64) * MIX).view(np.int64)),
            "s0": np.arange(ROWS),
            "s1": [f"{number}".ljust(WIDTH_BYTES) for number in range(ROWS)],
        }
    )
    config = EngineConfig(2, GROUPS, str(directory / "tier"), budget=BUDGET)
    sink = ListSink(str(directory / "staging"))
    engine = Engine(config, Graph.of_one(plan), "q", Storage(str(directory / "state")), sink, Journal(None))
    batch_rows = BUDGET.limits(config.limits, 2).round_bytes // WIDTH_BYTES
    share = ROWS // EPOCHS
    for epoch in range(EPOCHS):
        if epoch == RESIZED:
            assert engine.has_cleanup, "two processors have too little memory"
            engine.controller.resize(engine.manifest, 6)
        while engine.has_cursor:
            engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)), Cleaning.RESUMED)
        batch = whole.slice(epoch * share, share).combine_chunks().to_batches()[0]
        entry = engine.run_epoch(LocalCluster(Graph.of_one(plan), batch, batch_rows), epoch)
        while engine.has_backlog:
            entry = engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)
        if engine.has_room and not engine.has_cursor:
            entry = engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)), Cleaning.RETURNING)
        sizes = [part.resident_bytes for part in entry.processors]
        assert max(sizes) <= BUDGET.memory_bytes
    counts = [engine.manifest.placement.count(processor) for processor in range(6)]
    assert max(counts) - min(counts) <= 2, counts
    assert min(sizes) > 0.5 * max(sizes), sizes
    assert not engine.has_cleanup, "six processors have room for what two had to spill"
    rows = [
        [{"id": int(row), "k": int(keys[row])} for row in np.flatnonzero(tags == number)]
        for number in range(2)
    ]
    wanted = Counter(tuple(row["id"] for row in found) for found in join(rows, lambda _, row: row["k"]))
    assert Counter(sink.rows()) == wanted
