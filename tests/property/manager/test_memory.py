"""The budget holds in every epoch: images and all that is allocated besides, whatever the rows are like."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kit.chain_wire import CHAIN, ChainWire
from kit.examples import tries
from kit.wide_rows import PAYLOADS, hashed, payload
from spillway.manager.budget import Budget
from spillway.manager.cleanup import Cleaning
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.file import Journal
from spillway.model.window import Window
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.operators.partitioning import JOIN_KINDS, MULTI_PARTITION, REPLICATE, TREE
from spillway.plan.rules.window_rule import within_windows
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

pytestmark = pytest.mark.slow

MEMORY_BYTES = 4 << 20
TIMES_MEMORY = 1.5
"""How much larger than the budget all rows together are."""
EPOCHS = 3
LATENESS = 5
MOST_RESULTS = 50_000


def bounded(engine: Engine, operator: Graph, batches: list[pa.RecordBatch]) -> Iterator[EpochEntry]:
    """All epochs of a run and its clean-up, as the journal has them."""
    for number, batch in enumerate(batches):
        row_bytes = batch.nbytes // batch.num_rows + 1
        budget = engine.config.budget
        assert budget is not None
        size = max(1, budget.limits(engine.config.limits, 1).round_bytes // row_bytes)
        while engine.has_cursor:
            yield engine.run_cleanup_epoch(LocalCluster(operator), Cleaning.RESUMED)
        yield engine.run_epoch(LocalCluster(operator, batch, size), number)
        while engine.has_pending:
            yield engine.run_epoch(LocalCluster(operator), None)
        if engine.has_expiring or engine.has_room:
            cleaning = Cleaning.EXPIRING if engine.has_expiring else Cleaning.RETURNING
            yield engine.run_cleanup_epoch(LocalCluster(operator), cleaning)
    while engine.has_cursor or engine.has_pending or engine.has_waiting or engine.has_cleanup:
        if engine.has_cursor:
            yield engine.run_cleanup_epoch(LocalCluster(operator), Cleaning.RESUMED)
        elif engine.has_pending or engine.has_waiting:
            yield engine.run_epoch(LocalCluster(operator), None, ending=True)
        else:
            yield engine.run_cleanup_epoch(LocalCluster(operator))


def check_budget(entries: Iterator[EpochEntry], budget: Budget) -> list[EpochEntry]:
    """Every processor stays inside its budget in every epoch; the entries."""
    seen = []
    for entry in entries:
        seen.append(entry)
        assert len(seen) < 1000
        for one in entry.processors:
            most = max(one.resident_bytes, one.peak_bytes)
            assert most <= budget.memory_bytes, (entry.kind, entry.sequence, one.processor)
    return seen


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    rotation = draw(st.booleans())
    return {
        "seed": draw(st.integers(0, 1 << 32)),
        "inputs": draw(st.integers(2, 4)),
        "payload": draw(st.sampled_from(sorted(PAYLOADS))),
        "width": draw(st.sampled_from([20, 100, 400, 2000])),
        "outputs": draw(st.sampled_from(["ids", "all"])),
        "matches": draw(st.sampled_from([1, 1, 4])),
        "groups": draw(st.sampled_from([16, 64] if rotation else [4, 16, 64])),
        "processors": draw(st.sampled_from([1, 1, 2])),
        "window": draw(st.sampled_from([None, None, 8])),
        "rotation": rotation,
        "spill": draw(st.sampled_from(["least-productive", "random", "least-recent"])),
        "memory_bytes": draw(st.sampled_from([MEMORY_BYTES, MEMORY_BYTES, 2 * MEMORY_BYTES])),
    }


@tries(8, everyday=2)
@given(shapes())
def test_joins_windows_rotation_and_clean_up_stay_inside_the_budget(
    quick_directory: Callable[[], Path], shape: dict[str, Any]
) -> None:
    directory = quick_directory()
    try:
        check_join(shape, directory)
    finally:
        shutil.rmtree(directory)


def check_join(shape: dict[str, Any], directory: Path) -> None:
    inputs, budget = shape["inputs"], Budget(shape["memory_bytes"])
    kind = PAYLOADS[shape["payload"]]
    chosen = (0, 2) if shape["outputs"] == "all" else (0,)
    names = [f"{'id' if column == 0 else 'p'}{number}" for number in range(inputs) for column in chosen]
    types = [pa.int64() if column == 0 else kind for _ in range(inputs) for column in chosen]
    windows = tuple(Window(1, shape["window"], LATENESS) for _ in range(inputs)) if shape["window"] else ()
    operator = JoinOperator(
        inputs=tuple(WireInput(f"s{n}", ("id", "ts", "p"), ("s0", "s1", "s2")) for n in range(inputs)),
        outputs=tuple(ColumnRef(number, column) for number in range(inputs) for column in chosen),
        residual=within_windows(windows, None) if windows else None,
        key_columns=((),) * inputs,
        groups=shape["groups"],
        result_schema=pa.schema(list(zip(names, types, strict=True))),
        windows=windows,
    )
    config = EngineConfig(
        shape["processors"],
        shape["groups"],
        str(directory / "tier"),
        budget=budget,
        spill=shape["spill"],
        rotation=shape["rotation"],
        rotation_gap_seconds=0.0,
    )
    chance = np.random.default_rng(shape["seed"])
    whole = int(budget.memory_bytes * TIMES_MEMORY) * shape["processors"]
    rows = whole // EPOCHS // (shape["width"] + 24)
    of_input = rows * EPOCHS // inputs
    keys = max(1, of_input // shape["matches"])
    if keys * shape["matches"] ** inputs > MOST_RESULTS:
        keys = of_input
    batches, tables = [], []
    for epoch in range(EPOCHS):
        tags, key = chance.integers(0, inputs, rows), chance.integers(0, keys, rows)
        ids, times = np.arange(rows) + epoch * rows, chance.integers(0, LATENESS, rows) + 10 * epoch
        values = payload(shape["payload"], shape["width"], rows, chance)
        wire = [pa.array(tags.astype(np.int8)), pa.array(hashed(key)), pa.array(ids), pa.array(times), values]
        batches.append(pa.RecordBatch.from_arrays(wire, names=["t", "h", "s0", "s1", "s2"]))
        tables.append(pa.table({"t": tags, "k": key, "id": ids, "ts": times}))
    sink = ListSink(str(directory / "staging"))
    graph = Graph.of_one(operator)
    engine = Engine(config, graph, "q", Storage(str(directory / "state")), sink, Journal(None))
    check_budget(bounded(engine, graph, batches), budget)
    counters = engine.manifest.counters
    event(f"spilled: {counters.spills > 0}, cleaned up: {counters.results_cleanup > 0}")
    streams = pa.concat_tables(tables)
    reach, numbers = shape["window"], range(inputs)
    conditions = [f"s{n}.t = {n} AND s{n}.k = s0.k" for n in numbers]
    if reach is not None:
        times = ", ".join(f"s{n}.ts" for n in numbers)
        conditions.append(f"greatest({times}) - least({times}) <= {reach}")
    view = (
        f"SELECT {', '.join(f's{n}.id AS id{n}' for n in numbers)} FROM "
        f"{', '.join(f'streams s{n}' for n in numbers)} WHERE {' AND '.join(conditions)}"
    )
    check_rows(view, sink, [f"id{n}" for n in numbers], {"streams": streams})


def check_rows(view: str, sink: ListSink, names: list[str], streams: dict[str, pa.Table]) -> None:
    """The sink has the rows of the view, each as often as it does."""
    found = [table.select(names) for tables in sink.epochs.values() for table in tables]
    columns = ", ".join(names)
    with duckdb.connect() as database:
        for name, rows in streams.items():
            database.register(name, rows)
        database.sql(f"CREATE TABLE wanted AS {view}")
        if not found:
            assert database.sql("SELECT count(*) FROM wanted").fetchall() == [(0,)]
            return
        database.register("found", pa.concat_tables(found))
        counts = [f"SELECT {columns}, count(*) FROM {one} GROUP BY ALL" for one in ("wanted", "found")]
        assert database.sql(f"({counts[0]}) EXCEPT ({counts[1]})").fetchall() == []
        assert database.sql(f"({counts[1]}) EXCEPT ({counts[0]})").fetchall() == []


@pytest.mark.parametrize(
    ("join", "processors", "rotation"),
    [
        *((join, 1, False) for join in JOIN_KINDS if join != REPLICATE),
        (TREE, 1, True),
        pytest.param(REPLICATE, 1, False, marks=pytest.mark.slow),
        pytest.param(MULTI_PARTITION, 2, False, marks=pytest.mark.slow),
    ],
)
def test_trees_stay_inside_the_budget(
    quick_directory: Callable[[], Path], join: str, processors: int, rotation: bool
) -> None:
    directory, budget, groups = quick_directory(), Budget(MEMORY_BYTES), 16
    wire, chance = ChainWire(join, groups), np.random.default_rng(3)
    rows, width = 1_500 * processors, 300
    parts: list[list[pa.Table]] = [[], [], []]
    for epoch in range(EPOCHS):
        for of_input in parts:
            columns = {"id": np.arange(rows) + epoch * rows}
            columns |= {name: chance.integers(0, rows * EPOCHS, rows) for name in "xy"}
            of_input.append(pa.table(columns).append_column("p", payload("text", width, rows, chance)))
    batches = [wire.batch([of_input[epoch] for of_input in parts]) for epoch in range(EPOCHS)]
    config = EngineConfig(
        processors,
        groups,
        str(directory / "tier"),
        budget=budget,
        rotation=rotation,
        rotation_gap_seconds=0.0,
    )
    sink = ListSink(str(directory / "staging"))
    engine = Engine(config, wire.operator, "q", Storage(str(directory / "state")), sink, Journal(None))
    entries = check_budget(bounded(engine, wire.operator, batches), budget)
    assert any(entry.spills or entry.swaps for entry in entries)
    streams = {name: pa.concat_tables(of_input) for name, of_input in zip("abc", parts, strict=True)}
    check_rows(CHAIN, sink, ["a", "b", "c"], streams)
