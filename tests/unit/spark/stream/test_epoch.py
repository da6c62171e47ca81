"""The job of an epoch without Spark: torn epochs and full quotas are run again, and the answer stays."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kit.frame_jobs import LocalFrameJobs
from spillway.errors import SessionError
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal import Journal
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.operators.tree import Leaf, TreePlan
from spillway.plan.operators.tree_layout import KeyHash, LeafColumn, leaf_symbols
from spillway.plan.rules.planner import plan_view
from spillway.spark.stream.epoch import Quotas, SparkEpoch
from spillway.spark.stream.epoch_shape import EpochShape
from spillway.spark.stream.scan import ScanAhead, scan_rows
from spillway.spark.worker import processor
from spillway.spark.worker.processor import ArrowRows
from spillway.state.binding.tree import bind_tree
from spillway.state.graph.routing import Routing, fused_stages
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink

SQL = (
    "SELECT a.id AS x, b.id AS y, c.id AS z, d.id AS w FROM a, b, c, d "
    "WHERE a.l = b.l AND b.r = c.l AND c.r = d.l"
)
ROWS, KEYS, GROUPS = 60, 12, 16
COLUMNS = tuple(Column(name, "bigint") for name in ("l", "r", "id"))
MIX = np.uint64(0x9E3779B97F4A7C15)


def hashed(values: Any) -> np.ndarray[Any, Any]:
    return (np.asarray(values, dtype=np.int64).astype(np.uint64) * MIX).view(np.int64)


class Tree:
    """Four streams, three joins on different keys."""

    def __init__(self) -> None:
        plan = plan_view(View.sql(SQL), dict.fromkeys("abcd", COLUMNS))
        assert isinstance(plan, TreePlan)
        self.plan = plan
        exact = [True] * len(plan.joins)
        self.symbols = [leaf_symbols(plan, exact, leaf) for leaf in range(4)]
        slots = [tuple(f"s{leaf}_{n}" for n in range(len(of))) for leaf, of in enumerate(self.symbols)]
        self.graph = bind_tree(plan, exact, lambda _: pa.int64(), slots, GROUPS)
        chance = np.random.default_rng(3)
        self.streams = [
            {"l": chance.integers(0, KEYS, ROWS), "r": chance.integers(0, KEYS, ROWS), "id": np.arange(ROWS)}
            for _ in range(4)
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        for leaf, symbols in enumerate(self.symbols):
            stream, plan = self.streams[leaf], self.plan
            join = next(join for join in plan.joins if Leaf(leaf) in join.children)
            columns = {
                "t": np.full(ROWS, leaf, np.int8),
                "h": hashed(stream[self._key(leaf, join.classes[0])]),
            }
            for number, symbol in enumerate(symbols):
                if isinstance(symbol, KeyHash):
                    columns[f"s{leaf}_{number}"] = hashed(stream[self._key(leaf, symbol.key_class)])
                else:
                    assert isinstance(symbol, LeafColumn)
                    columns[f"s{leaf}_{number}"] = stream[
                        _name(plan.inputs[leaf].columns[symbol.column].expression)
                    ]
            yield pa.RecordBatch.from_pydict(columns)

    def expected(self) -> Counter[tuple[int, ...]]:
        a, b, c, d = ([tuple(map(int, row)) for row in zip(*s.values(), strict=True)] for s in self.streams)
        return Counter(
            (x[2], y[2], z[2], w[2])
            for x in a
            for y in b
            if x[0] == y[0]
            for z in c
            if y[1] == z[0]
            for w in d
            if z[1] == w[0]
        )

    def _key(self, leaf: int, key_class: int) -> str:
        return _name(self.plan.inputs[leaf].keys[self.plan.key_classes[leaf].index(key_class)])


def _name(expression: str) -> str:
    return expression.replace("`", "").rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Rows:
    """The rows of a batch: few, which the driver ships, or read by one task per stream."""

    tree: Tree
    are_few: bool

    def few(self) -> Iterator[pa.RecordBatch] | None:
        return self.tree.batches() if self.are_few else None

    def sources(self, jobs: LocalFrameJobs) -> list[Any]:
        found = []
        for batch in self.tree.batches():
            reader = ArrowRows(batch.schema.serialize().to_pybytes())
            frames = [batch.slice(at, 7).serialize().to_pybytes() for at in range(0, ROWS, 7)]
            found.append((jobs.placed([frames], [None]), reader))
        return found


class Nowhere:
    def of(self, processors: int) -> list[str | None]:
        return [None] * processors


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(processor, "arrive", lambda *_: None)

    def run(jobs: LocalFrameJobs, are_few: bool, quotas: Quotas) -> tuple[Counter[Any], SparkEpoch]:
        tree = Tree()
        root = tmp_path / os.urandom(4).hex()
        sink = ListSink(str(root / "out"))
        config = EngineConfig(processors=3, groups=GROUPS, tier=str(root / "tier"))
        with Journal(root / "journal") as journal:
            engine = Engine(config, tree.graph, "q", Storage(str(root / "state")), sink, journal)
            places: Any = Nowhere()
            epoch = SparkEpoch(jobs, tree.graph, places, quotas, ScanAhead(jobs))
            rows: Any = Rows(tree, are_few)
            entry = engine.run_epoch(replace(epoch, batch=rows), 0)
            assert entry.input_rows == 4 * ROWS
        epoch.ahead.close()
        assert Counter(sink.rows()) == tree.expected()
        return Counter(sink.rows()), epoch

    return run


@pytest.mark.parametrize("are_few", [True, False])
def test_an_epoch_is_one_job(run: Any, are_few: bool) -> None:
    jobs = LocalFrameJobs()
    found, _ = run(jobs, are_few, Quotas(64, 64))
    assert found.total() > 1000
    assert jobs.jobs == 1


@pytest.mark.parametrize("target", range(6))
def test_a_torn_epoch_is_run_again(run: Any, target: int) -> None:
    """Whoever reads a second attempt of a task, whether rows are for this stage or a later one."""
    jobs = LocalFrameJobs(torn=[-1, target])
    run(jobs, False, Quotas(64, 64))
    assert jobs.jobs == 2


def test_an_epoch_that_is_torn_again_and_again_fails(run: Any) -> None:
    with pytest.raises(SessionError, match=r"epoch 0 failed 4 times: task . of stage"):
        run(LocalFrameJobs(torn=[1] * 8), False, Quotas(64, 64))


@pytest.mark.parametrize("are_few", [True, False])
def test_a_quota_that_is_too_small_grows(run: Any, are_few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spillway.spark.stream.epoch.MAX_PARCEL_BYTES", 256)
    jobs, quotas = LocalFrameJobs(), Quotas(2, 2)
    run(jobs, are_few, quotas)
    assert jobs.jobs > 1
    assert quotas.stage > 8


def test_rows_that_were_scattered_ahead_are_used_once_by_their_own_batch_and_shape() -> None:
    tree, jobs = Tree(), LocalFrameJobs()
    placement = tuple(group % 2 for group in range(tree.graph.groups))
    shape = EpochShape(Routing(tree.graph, placement, 2, fused_stages(tree.graph, placement)), 1 << 20, 8, 8)
    first, second, third = (Rows(tree, False) for _ in range(3))
    ahead = ScanAhead(jobs)
    try:
        ahead.running(shape)
        ahead.offer(first)
        ahead.running(shape)  # a clean-up epoch in between
        ahead.offer(second)
        found = ahead.take(first, shape)
        assert found is not None and found.tasks == 4
        assert ahead.take(first, shape) is None
        assert ahead.take(third, shape) is None
        ahead.running(shape)
        ahead.offer(third)
        moved = replace(shape, scan_parcels=16)
        assert ahead.take(third, moved) is None  # scattered for another shape
        assert ahead.take(third, shape) is None
    finally:
        ahead.close()


def test_rows_that_are_larger_than_they_seemed_are_not_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, jobs = Tree(), LocalFrameJobs()
    placement = tuple(group % 2 for group in range(tree.graph.groups))
    shape = EpochShape(Routing(tree.graph, placement, 2, fused_stages(tree.graph, placement)), 1 << 20, 8, 8)
    rows: Any = Rows(tree, True)
    assert scan_rows(jobs, rows, shape).shipped
    monkeypatch.setattr("spillway.spark.stream.scan.MOST_SHIPPED_BYTES", 1000)
    scan = scan_rows(jobs, rows, shape)
    assert not scan.shipped and scan.tasks == 4
