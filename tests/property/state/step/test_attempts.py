"""Two attempts of one step at the same time, in one memory tier: either may be the one that counts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from kit.histories import open_engine
from spillway.manager.config import EngineConfig
from spillway.manager.spill import Spill
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.graph.step import run_step
from spillway.state.join.operator import JoinOperator
from spillway.state.log.manifest import Manifest
from spillway.state.orders.orders import Limits, Orders
from spillway.state.orders.report import Report
from spillway.state.step.operator import WireInput
from spillway.state.step.task import TaskAttempt
from spillway.testing import ListSink, LocalCluster

MIX = np.uint64(0x9E3779B97F4A7C15)
GROUPS = 4
KEYS = 4_000
PLAN = JoinOperator(
    inputs=tuple(WireInput(name, ("id", "p"), ("s0", "s1")) for name in "ab"),
    outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
    residual=None,
    key_columns=((), ()),
    groups=GROUPS,
    result_schema=pa.schema([(name, pa.int64()) for name in "ab"]),
)


class SpillsInSecondEpoch:
    def decide(self, manifest: Manifest, *_: object, **__: object) -> list[Spill]:
        return [Spill(0, 0b0010, 1, 1, "scripted")] if manifest.sequence == 0 else []

    def observe(self, group_results: dict[int, int], begun: int, ended: int) -> None:
        pass


def wire(number: int) -> pa.RecordBatch:
    """One row of each key for an input; ids are keys."""
    keys = np.arange(1, KEYS + 1)
    hashes = (keys.astype(np.uint64) * MIX).view(np.int64)
    tags = pa.array(np.full(KEYS, number, dtype=np.int8))
    payload = pa.array([f"{key:0200d}" for key in keys])
    return pa.RecordBatch.from_arrays(
        [tags, pa.array(hashes), pa.array(keys), payload], names=["t", "h", "s0", "s1"]
    )


def overtaken(orders: Sequence[Orders]) -> list[Report]:
    """The attempt that counts has probed its first batch when another one runs from beginning to end."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield wire(0)
        yield wire(1)  # asked for by the first round, probed by the second
        run_step(orders[0], PLAN, TaskAttempt("localhost", "other", "other"), [wire(0), wire(1)])

    return [run_step(orders[0], PLAN, TaskAttempt("localhost", "local", "counts"), batches())]


def test_an_attempt_does_not_free_what_another_has_just_written(tmp_path: Path) -> None:
    sink = ListSink(str(tmp_path / "staging"))
    limits = Limits(round_bytes=wire(0).nbytes + 1)
    config = EngineConfig(1, GROUPS, str(tmp_path / "tier"), limits)
    engine = open_engine(tmp_path, config, Graph.of_one(PLAN), sink)
    engine.controller.spill = SpillsInSecondEpoch()  # type: ignore[assignment]
    engine.run_epoch(LocalCluster(Graph.of_one(PLAN), wire(0)), 0)
    engine.run_epoch(overtaken, 1)
    while engine.has_pending:
        engine.run_epoch(LocalCluster(Graph.of_one(PLAN)), None)
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(PLAN)))
    assert Counter(sink.rows()) == {(key, key): 2 for key in range(1, KEYS + 1)}
