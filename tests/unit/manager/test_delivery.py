"""Several results: each sink gets every epoch once and in order, whatever happens to the others."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from spillway.errors import CheckpointError, SinkError, StateError
from spillway.manager.config import EngineConfig
from spillway.manager.delivery import ResultSink, StagedEpoch
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.plan.expression.nodes import Call, ColumnRef, Literal
from spillway.state.graph.edge import Root, Selection
from spillway.state.graph.graph import Graph
from spillway.state.log.manifest_log import SNAPSHOT_EPOCHS
from spillway.state.rows.xxhash import xxhash64
from spillway.state.select.operator import SelectOperator
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

SCHEMA = pa.schema([("id", pa.int64())])
ID = ColumnRef(0, 0)
EVEN = Call("=", (Call("%", (ID, Literal(2, "bigint"))), Literal(0, "bigint")))
GRAPH = Graph(
    (SelectOperator((WireInput("a", ("id",), ("s0",)),), (ID,), None, 2, SCHEMA),),
    ((0, 0),),
    roots=(Root(0, "all"), Root(0, "even", Selection((ID,), SCHEMA, EVEN))),
)


class WeakSink(ListSink):
    """Refuses epochs while it is down."""

    down = False

    def commit(self, epoch: StagedEpoch) -> None:
        if self.down:
            raise SinkError("out of reach")
        assert list(self.epochs) == list(range(epoch.sequence)), "each epoch once, in order"
        super().commit(epoch)

    def ids(self) -> list[object]:
        return [value for (value,) in self.rows()]


def sinks(directory: Path) -> dict[str, WeakSink]:
    return {name: WeakSink(str(directory / name)) for name in GRAPH.root_names}


def start(
    directory: Path, to: ResultSink | Mapping[str, ResultSink], owed_epochs: int = 20, graph: Graph = GRAPH
) -> Engine:
    config = EngineConfig(2, 2, str(directory / "tier"), owed_epochs=owed_epochs)
    return Engine(config, graph, "q", Storage(str(directory / "checkpoint")), to, Journal(None))


def take(engine: Engine, number: int) -> None:
    """One epoch, which brings one row."""
    ids = pa.array([number])
    columns = [pa.array([0], pa.int8()), pa.array(xxhash64([ids])), ids]
    batch = pa.RecordBatch.from_arrays(columns, names=["t", "h", "s0"])
    engine.run_epoch(LocalCluster(engine.graph, batch), number)


def test_a_sink_that_is_down_for_ten_epochs_gets_them_when_it_is_back(tmp_path: Path) -> None:
    """Over a snapshot and a restart; the other sink has every epoch at once."""
    to = sinks(tmp_path)
    engine = start(tmp_path, to)
    first = SNAPSHOT_EPOCHS - 5
    for number in range(first):
        take(engine, number)
    to["even"].down = True
    for number in range(first, first + 5):
        take(engine, number)
    engine = start(tmp_path, to)  # while it is down
    for number in range(first + 5, first + 10):
        take(engine, number)
        assert to["all"].ids() == list(range(number + 1))
    assert engine.undelivered and to["even"].ids() == list(range(0, first, 2))
    to["even"].down = False
    take(engine, first + 10)
    assert not engine.undelivered
    assert to["even"].ids() == list(range(0, first + 11, 2))
    assert to["all"].ids() == list(range(first + 11))


def test_after_a_kill_between_two_sinks_each_gets_what_follows_its_own_last_epoch(tmp_path: Path) -> None:
    to = sinks(tmp_path)
    engine = start(tmp_path, to)
    take(engine, 0)
    commit = to["even"].commit
    to["even"].commit = _killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        take(engine, 1)
    to["even"].commit = commit  # type: ignore[method-assign]
    assert (to["all"].last_committed("q"), to["even"].last_committed("q")) == (1, 0)
    engine = start(tmp_path, to)
    assert (to["all"].last_committed("q"), to["even"].last_committed("q")) == (1, 1)
    take(engine, 2)
    assert (to["all"].ids(), to["even"].ids()) == ([0, 1, 2], [0, 2])


def _killed(epoch: StagedEpoch) -> None:
    raise KeyboardInterrupt


def test_a_sink_that_lacks_too_much_stops_the_query_with_its_error(tmp_path: Path) -> None:
    to = sinks(tmp_path)
    engine = start(tmp_path, to, owed_epochs=2)
    to["all"].down = True
    take(engine, 0)
    take(engine, 1)
    with pytest.raises(SinkError, match="out of reach"):
        take(engine, 2)
    assert to["even"].ids() == [0, 2]  # the others have what is committed
    to["all"].down = False
    start(tmp_path, to, owed_epochs=2)
    assert to["all"].ids() == [0, 1, 2]


def test_a_sink_that_lost_epochs_is_refused_by_name_though_another_is_owed_some(tmp_path: Path) -> None:
    to = sinks(tmp_path)
    engine = start(tmp_path, to)
    to["all"].down = True
    for number in range(3):
        take(engine, number)
    to["even"].epochs.clear()
    with pytest.raises(CheckpointError, match=r"the sink of even has epochs up to -1, .* up to 2"):
        start(tmp_path, to)


def test_every_result_needs_a_sink(tmp_path: Path) -> None:
    to = sinks(tmp_path)
    for given in (to["all"], {"all": to["all"]}, {**to, "odd": to["all"]}):
        with pytest.raises(StateError, match="results \\['all', 'even'\\] need one sink each"):
            start(tmp_path, given)


def test_a_result_that_several_roots_feed_is_their_rows_together(tmp_path: Path) -> None:
    """Also with the only sink given as it is."""
    twice = Graph(GRAPH.operators, GRAPH.tags, roots=(Root(0), Root(0, selection=GRAPH.roots[1].selection)))
    sink = ListSink(str(tmp_path / "staging"))
    engine = start(tmp_path, sink, graph=twice)
    for number in range(3):
        take(engine, number)
    assert sorted(sink.rows()) == [(0,), (0,), (1,), (2,), (2,)]
