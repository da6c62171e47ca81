"""A checkpoint with a real journal: the real engine in this process, a small budget, spills and clean-up."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spillway.manager.budget import Budget
from spillway.manager.checkpoint import Checkpoint, Identity
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import FILE_NAME, Journal
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.step.operator import WireInput
from spillway.testing import ListSink, LocalCluster

GROUPS = 16
EPOCHS = 6
ROWS = 12_000
KEYS = 9_000


def _operator() -> JoinOperator:
    return JoinOperator(
        inputs=tuple(WireInput(f"s{number}", ("id", "p"), ("s0", "s1")) for number in range(2)),
        outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
        residual=None,
        key_columns=((), ()),
        groups=GROUPS,
        result_schema=pa.schema([("x", pa.int64()), ("y", pa.int64())]),
    )


def _batch(epoch: int) -> pa.RecordBatch:
    random = np.random.default_rng(epoch)
    keys = random.integers(0, KEYS, ROWS).astype(np.uint64)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(random.integers(0, 2, ROWS).astype(np.int8)),
            pa.array((keys * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)),
            pa.array(np.arange(ROWS)),
            pa.array(["x" * 150] * ROWS),
        ],
        names=["t", "h", "s0", "s1"],
    )


def _drive(directory: Path, sink: ListSink, first: int, last: int) -> Engine:
    """One driver: the batches [first, last), and at the end of the input what is pending or missing."""
    checkpoint = Checkpoint(str(directory), Identity("f", "SELECT a < b & c", (("id",), ("id",)), GROUPS))
    config = EngineConfig(2, GROUPS, str(directory.parent / "tier"), budget=Budget(4 << 20))
    plan = _operator()
    with Journal(directory / FILE_NAME) as journal:
        engine = Engine(config, Graph.of_one(plan), "q", checkpoint.storage, sink, journal)
        for batch in range(first, last):
            engine.run_epoch(LocalCluster(Graph.of_one(plan), _batch(batch)), batch)
        while last == EPOCHS and engine.has_pending:
            engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)
        while last == EPOCHS and engine.has_cleanup:
            engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)))
    checkpoint.close()
    return engine


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Engine]:
    """A checkpoint of two drivers, and the second driver's engine at its end."""
    directory = tmp_path_factory.mktemp("report") / "state"
    directory.mkdir()
    sink = ListSink(str(directory.parent / "staging"))
    _drive(directory, sink, 0, EPOCHS // 2)
    return directory, _drive(directory, sink, EPOCHS // 2, EPOCHS)
