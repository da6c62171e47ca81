"""Groups that take turns in memory: the budget holds, nothing is missing, and no clean-up is left."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kit.histories import open_engine
from spillway.manager.budget import Budget
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.plan.expression.nodes import ColumnRef
from spillway.policy.turns import GROUP, SHARE
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

pytestmark = pytest.mark.slow

MIX = np.uint64(0x9E3779B97F4A7C15)
MEMORY_BYTES = 4 << 20
ROW_BYTES = 1_200
"""At least, in memory: the payload."""
BATCH_ROWS = 125
"""Spark hands over batches that fit into a round."""
EPOCHS = 5
ROWS = 750
KEYS = 1_250
PLAN = JoinOperator(
    inputs=tuple(WireInput(name, ("id", "p"), ("s0", "s1")) for name in "abc"),
    outputs=tuple(ColumnRef(number, 0) for number in range(3)),
    residual=None,
    key_columns=((), (), ()),
    groups=16,
    result_schema=pa.schema([(name, pa.int64()) for name in "abc"]),
)


@pytest.mark.parametrize(
    ("gap_seconds", "turns"),
    [pytest.param(0.0, SHARE, marks=pytest.mark.nightly), (0.0, GROUP), (3600.0, SHARE)],
)
def test_groups_take_turns(tmp_path: Path, gap_seconds: float | None, turns: str) -> None:
    chance = np.random.default_rng(5)
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(
        processors=1,
        groups=16,
        tier=str(tmp_path / "tier"),
        budget=Budget(MEMORY_BYTES),
        spill_share=0.3,
        rotation=True,
        rotation_gap_seconds=gap_seconds,
        rotation_turns=turns,
        rotation_backlog_bytes=1 << 40,
    )
    engine = open_engine(tmp_path, config, Graph.of_one(PLAN), sink)
    keys = [chance.integers(0, KEYS, (3, ROWS)) for _ in range(EPOCHS)]
    entries = []
    for batch_id, of_epoch in enumerate(keys):
        entries.append(
            engine.run_epoch(LocalCluster(Graph.of_one(PLAN), wire(of_epoch), BATCH_ROWS), batch_id)
        )
        while engine.has_pending:
            entries.append(engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None))
    early = sum(entry.results for entry in entries)
    waiting = engine.manifest.suspended
    while engine.has_pending or engine.has_waiting:
        entries.append(engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None, ending=True))
        assert len(entries) < 500, "the turns do not come to an end"
    wanted = expected(keys)
    assert sum(wanted.values()) == len(sink.rows())
    assert Counter(sink.rows()) == wanted
    assert waiting
    assert 0 < early < sum(wanted.values())
    assert not engine.has_cleanup
    resumed = [swap.resumed.bit_count() for entry in entries for swap in entry.swaps]
    assert sum(resumed) > 8
    assert max(resumed) > 1 if turns == SHARE else max(resumed) == 1
    assert max(entry.processors[0].peak_bytes for entry in entries) <= MEMORY_BYTES


@pytest.mark.parametrize(
    ("memory_bytes", "gap_seconds"),
    [
        (MEMORY_BYTES, None),
        pytest.param(3 * MEMORY_BYTES, 3600.0, marks=pytest.mark.slow),
        pytest.param(MEMORY_BYTES, 3600.0, marks=pytest.mark.nightly),
        pytest.param(3 * MEMORY_BYTES, None, marks=pytest.mark.nightly),
    ],
)
def test_what_waits_is_bounded(tmp_path: Path, memory_bytes: int, gap_seconds: float | None) -> None:
    chance = np.random.default_rng(5)
    sink = ListSink(str(tmp_path / "staging"))
    processors = 1 if memory_bytes == MEMORY_BYTES else 2
    config = EngineConfig(
        processors,
        groups=16,
        tier=str(tmp_path / "tier"),
        budget=Budget(memory_bytes // processors),
        rotation=True,
        rotation_gap_seconds=gap_seconds,
    )
    engine = open_engine(tmp_path, config, Graph.of_one(PLAN), sink)
    keys = [chance.integers(0, KEYS, (3, ROWS // 2)) for _ in range(8 * processors)]
    arrived = probed = 0
    for batch_id, of_epoch in enumerate(keys):
        entries = [engine.run_epoch(LocalCluster(Graph.of_one(PLAN), wire(of_epoch), BATCH_ROWS), batch_id)]
        while engine.has_backlog:
            entries.append(engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None))
            assert len(entries) < 100, "the turns do not come to an end"
        parts = [one for entry in entries for one in entry.processors]
        arrived += sum(one.input_rows for one in parts)
        probed += sum(one.probed_rows for one in parts)
        waiting = arrived - probed
        assert entries[-1].pending_rows == entries[-1].waiting_rows == waiting
        limit = sum(one.waiting_limit_bytes for one in entries[-1].processors)
        assert limit == processors * Budget(memory_bytes // processors).backlog_bytes
        assert waiting * ROW_BYTES <= limit
        assert max(one.peak_bytes for one in parts) <= memory_bytes // processors
    assert engine.manifest.suspended
    while engine.has_pending or engine.has_waiting:
        engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None, ending=True)
    assert Counter(sink.rows()) == expected(keys)
    assert not engine.has_cleanup


@pytest.mark.parametrize("memory_bytes", [MEMORY_BYTES, None])
def test_a_restart_without_rotation_gives_what_waited(tmp_path: Path, memory_bytes: int | None) -> None:
    chance = np.random.default_rng(5)
    sink = ListSink(str(tmp_path / "staging"))
    storage = Storage(str(tmp_path / "checkpoint"))
    tier = str(tmp_path / "tier")
    turning = EngineConfig(1, 16, tier, budget=Budget(MEMORY_BYTES), rotation=True, rotation_gap_seconds=3600)
    engine = Engine(turning, Graph.of_one(PLAN), "q", storage, sink, Journal(None))
    keys = [chance.integers(0, KEYS, (3, ROWS)) for _ in range(EPOCHS)]
    for batch_id, of_epoch in enumerate(keys):
        engine.run_epoch(LocalCluster(Graph.of_one(PLAN), wire(of_epoch), BATCH_ROWS), batch_id)
    assert engine.has_waiting
    budget = None if memory_bytes is None else Budget(memory_bytes)
    engine = Engine(
        EngineConfig(2, 16, tier, budget=budget), Graph.of_one(PLAN), "q", storage, sink, Journal(None)
    )
    epochs = 0
    while engine.has_pending or engine.has_waiting:
        entry = engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None, ending=True)
        assert budget is None or max(one.resident_bytes for one in entry.processors) <= MEMORY_BYTES
        epochs += 1
        assert epochs < 500, "what waits never gets its turn"
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(PLAN)))
    assert Counter(sink.rows()) == expected(keys)


def test_pending_rows_that_compress_well_stay_inside_the_budget(tmp_path: Path) -> None:
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 16, str(tmp_path / "tier"), budget=Budget(MEMORY_BYTES))
    engine = open_engine(tmp_path, config, Graph.of_one(PLAN), sink)
    keys = [np.random.default_rng(epoch).integers(0, KEYS, (3, 1_500)) for epoch in range(3)]
    entries = []
    for batch_id, of_epoch in enumerate(keys):
        entries.append(
            engine.run_epoch(LocalCluster(Graph.of_one(PLAN), wire(of_epoch, width=1_500)), batch_id)
        )
        while engine.has_pending:
            entries.append(engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None))
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(PLAN)))
    assert Counter(sink.rows()) == expected(keys)
    assert max(entry.processors[0].resident_bytes for entry in entries) <= MEMORY_BYTES


def wire(keys: np.ndarray, width: int = ROW_BYTES) -> pa.RecordBatch:
    flat = keys.reshape(-1)
    hashes = (flat.astype(np.uint64) * MIX).view(np.int64)
    payload = pa.array([f"{key:0{width}d}" for key in flat])
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.repeat(np.arange(3, dtype=np.int8), keys.shape[1])),
            pa.array(hashes),
            pa.array(flat),
            payload,
        ],
        names=["t", "h", "s0", "s1"],
    )


def expected(keys: list[np.ndarray]) -> Counter[tuple[int, int, int]]:
    """Ids are keys: a key that comes x, y and z times gives x * y * z equal results."""
    together = np.concatenate(keys, axis=1)
    counts = np.prod([np.bincount(of_input, minlength=KEYS) for of_input in together], axis=0)
    return Counter({(int(key),) * 3: int(counts[key]) for key in np.flatnonzero(counts)})
