"""A sink that lacks more than the last epoch was deleted, changed or restored: the engine refuses it."""

from pathlib import Path

import pyarrow as pa
import pytest

from spillway.errors import CheckpointError
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

JOIN = Graph.of_one(
    JoinOperator(
        inputs=tuple(WireInput(name, ("id",), ("s0",)) for name in "ab"),
        outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
        residual=None,
        key_columns=((), ()),
        groups=2,
        result_schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]),
    )
)


def start(directory: Path, sink: ListSink) -> Engine:
    config = EngineConfig(1, 2, str(directory / "tier"))
    return Engine(config, JOIN, "q", Storage(str(directory / "checkpoint")), sink, Journal(None))


@pytest.mark.parametrize("epochs", [3, 50])
def test_a_sink_that_lost_epochs_is_refused(tmp_path: Path, epochs: int) -> None:
    """Also when the records of those epochs are gone: they are kept since the last snapshot but one."""
    sink = ListSink(str(tmp_path / "staging"))
    engine = start(tmp_path, sink)
    for batch_id in range(epochs):
        engine.run_epoch(LocalCluster(JOIN), batch_id)
    last = sink.epochs.pop(epochs - 1)
    assert start(tmp_path, sink).manifest.sequence == epochs - 1  # a crash before the sink had the last
    assert sink.epochs[epochs - 1] == last
    for kept in (epochs - 2, 0):
        left = ListSink(str(tmp_path / "staging"))
        left.epochs = {number: [] for number in range(kept)}
        message = (
            rf"the sink has epochs up to {kept - 1}, .* epochs up to {epochs - 1}: .*restore it, or start"
        )
        with pytest.raises(CheckpointError, match=message):
            start(tmp_path, left)
