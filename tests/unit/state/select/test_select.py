"""A selection passes all rows on as they come, whatever the limits, and keeps nothing."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.file import Journal
from spillway.plan.expression.nodes import Call, ColumnRef, Literal
from spillway.state.graph.graph import Graph
from spillway.state.orders.orders import Limits
from spillway.state.rows.xxhash import xxhash64
from spillway.state.select.operator import SelectOperator
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

ID, N = ColumnRef(0, 0), ColumnRef(0, 1)
OPERATOR = SelectOperator(
    inputs=(WireInput("a", ("id", "n"), ("s0", "s1")),),
    outputs=(ID, Call("+", (ID, N))),
    predicate=Call("<>", (N, Literal(3, "bigint"))),
    groups=4,
    result_schema=pa.schema([("id", pa.int64()), ("sum", pa.int64())]),
)
GRAPH = Graph.of_one(OPERATOR)


def batch(ids: range) -> pa.RecordBatch:
    numbers = [None if number % 10 == 9 else number % 5 for number in ids]
    columns = [pa.array(list(ids)), pa.array(numbers, pa.int64())]
    tags = pa.array(np.zeros(len(ids), np.int8))
    hashes = pa.array(xxhash64(columns[:1]))
    return pa.RecordBatch.from_arrays([tags, hashes, *columns], names=["t", "h", "s0", "s1"])


def wanted(ids: range) -> list[tuple[int, int]]:
    return [(number, number + number % 5) for number in ids if number % 5 != 3 and number % 10 != 9]


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(rows=1, results=1, chunk_rows=7, work=1, chunk_bytes=100)]
)
@pytest.mark.parametrize("batch_rows", [None, 3])
def test_all_rows_are_through_in_one_epoch(tmp_path: Path, limits: Limits, batch_rows: int | None) -> None:
    sink = ListSink(str(tmp_path / "staging"))
    for life in range(3):  # a restart finds nothing to do
        config = EngineConfig(3 - life, 4, str(tmp_path / "tier"), limits)
        engine = Engine(config, GRAPH, "q", Storage(str(tmp_path / "state")), sink, Journal(None))
        ids = range(100 * life, 100 * life + 100)
        entry = engine.run_epoch(LocalCluster(GRAPH, batch(ids), batch_rows, lost_steps=1), life)
        assert (entry.input_rows, entry.pending_rows, entry.results) == (100, 0, len(wanted(ids)))
        assert not (engine.has_pending or engine.has_waiting or engine.has_cleanup or engine.manifest.runs)
        assert sum(part.probed_rows for part in entry.processors) == 100
    assert sorted(sink.rows()) == wanted(range(300))


def test_rows_pass_in_pieces_that_fit_the_limits(tmp_path: Path) -> None:
    """A piece becomes a row group."""
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 4, str(tmp_path / "tier"), Limits(chunk_rows=40))
    engine = Engine(config, GRAPH, "q", Storage(str(tmp_path / "state")), sink, Journal(None))
    engine.run_epoch(LocalCluster(GRAPH, batch(range(100))), 0)
    (file,) = (tmp_path / "staging").iterdir()
    groups = pq.ParquetFile(file).metadata
    assert groups.num_row_groups == 3
    assert all(groups.row_group(number).num_rows <= 40 for number in range(3))
