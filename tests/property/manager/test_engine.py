"""Any history of epochs, limits, restarts and lost memory gives the join by its definition, once."""

from collections import Counter
from collections.abc import Callable
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.examples import tries
from kit.histories import Check, History, Player, drawn, open_engine, pasted
from kit.payload import KINDS, column, kind_type, value
from spillway.manager import StagedEpoch
from spillway.manager.budget import Budget
from spillway.manager.config import EngineConfig
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.join.reference import join
from spillway.state.orders.orders import Limits
from spillway.state.rows.compaction import CompactionLimits
from spillway.state.step.operator import WireInput
from spillway.testing import ListSink, LocalCluster, ScriptedSpills

MIX = np.uint64(0x9E3779B97F4A7C15)


def operator(inputs: int, groups: int, *, exact: bool, payloads: tuple[str | None, ...] = ()) -> JoinOperator:
    """Inputs have an id, their key unless it is its hash (`exact`), and a payload where one is named."""
    names, slots = (("id",), ("s0",)) if exact else (("id", "k"), ("s0", "s1"))
    carrying = [(number, kind) for number, kind in enumerate(payloads) if kind is not None]
    extra = {number: (("p",), (f"p{number}",)) for number, _ in carrying}
    return JoinOperator(
        inputs=tuple(
            WireInput(f"s{n}", (*names, *extra.get(n, ((), ()))[0]), (*slots, *extra.get(n, ((), ()))[1]))
            for n in range(inputs)
        ),
        outputs=(
            *(ColumnRef(number, 0) for number in range(inputs)),
            *(ColumnRef(number, len(names)) for number, _ in carrying),
        ),
        residual=None,
        key_columns=(() if exact else (1,),) * inputs,
        groups=groups,
        result_schema=pa.schema(
            [
                *((f"id{number}", pa.int64()) for number in range(inputs)),
                *((f"p{number}", kind_type(kind)) for number, kind in carrying),
            ]
        ),
    )


def wire(
    rows: list[tuple[int, int, int]], collide: int, payloads: tuple[str | None, ...] = ()
) -> pa.RecordBatch:
    """Rows of (input, id, key) as a batch; keys equal modulo `collide` share their hash."""
    tags, ids, keys = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    hashes = ((keys % collide).astype(np.uint64) * MIX).view(np.int64)
    carried = {
        f"p{number}": column(kind, [id_ if tag == number else None for tag, id_, _ in rows])
        for number, kind in enumerate(payloads)
        if kind is not None
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(tags.astype(np.int8)), pa.array(hashes), pa.array(ids), pa.array(keys), *carried.values()],
        names=["t", "h", "s0", "s1", *carried],
    )


@st.composite
def histories(draw: st.DrawFn, *, moving: bool = False, hot: bool = False) -> History:
    """With `moving` there are several processors, many epochs, and more groups to move; with `hot` few keys.

    Rows come from a drawn seed: drawn one by one they are too few to fill rounds and merges.
    """
    inputs = draw(st.integers(2, 3 if moving or hot else 5))
    chance = Random(draw(st.integers(0, 1 << 32)))
    sizes = [chance.choice([4, 9, 14] if moving else [0, 4, 9, 14]) for _ in range(draw(st.integers(1, 7)))]
    each = sum(sizes) / inputs
    fitting = [n for n in (1, 2, 4, 8, 20, 50) if n * (each / n) ** inputs <= 800]
    keys = fitting[0] if hot else draw(st.sampled_from(fitting[:2]))
    epochs = [[(chance.randrange(inputs), chance.randrange(keys)) for _ in range(size)] for size in sizes]
    if hot or draw(st.booleans()):  # as Spark brings them: the rows of one source after those of another
        epochs = [sorted(rows) for rows in epochs]
    payload = st.one_of(st.none(), st.sampled_from(sorted(KINDS)))
    return {
        "payloads": tuple(draw(payload) for _ in range(inputs)),
        "epochs": epochs,
        "collide": draw(st.sampled_from([5, 1000] if moving else [2, 5, 1000])),
        **drawn(draw, [5, 8] if moving else [1, 3, 8], processors=2 if moving else 1, tight=hot),
    }


@pytest.mark.histories
@tries(everyday=4)
@given(histories(hot=True))
def test_rows_that_take_several_epochs_give_every_result_once(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


@pytest.mark.histories
@tries(everyday=4)
@given(histories())
def test_every_history_gives_the_join_by_definition(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


@pytest.mark.histories
@tries(everyday=4)
@given(histories(moving=True))
def test_moves_between_processors_change_no_result(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


def probed(taken: list[list[dict[str, Any]]], collide: int) -> int:
    """How many combinations have equal hashes: an epoch's results are counted before keys are compared."""
    counts = [Counter(row["k"] % collide for row in rows) for rows in taken]
    return sum(prod(of[value] for of in counts) for value in counts[0])


def check(history: History, directory: Path) -> None:
    payloads = history["payloads"]
    inputs = len(payloads)
    exact = history["collide"] == 1000
    plan = operator(inputs, history["groups"], exact=exact, payloads=payloads)
    taken: list[list[dict[str, Any]]] = [[] for _ in payloads]
    batches = []
    for rows in history["epochs"]:
        tagged = []
        for tag, key in rows:
            tagged.append((tag, len(taken[tag]), key))
            taken[tag].append({"id": len(taken[tag]), "k": key})
        batches.append(wire(tagged, history["collide"], payloads) if tagged else None)
    ids = [tuple(row["id"] for row in rows) for rows in join(taken, lambda _, row: row["k"])]
    player = Player(history, Graph.of_one(plan), directory, probed(taken, history["collide"]))
    player.play(batches)
    wanted = Counter(
        repr((*of, *(value(kind, id_) for kind, id_ in zip(payloads, of, strict=True) if kind is not None)))
        for of in ids
    )
    assert Counter(map(repr, player.sink.rows())) == wanted
    counters = player.engine.manifest.counters
    assert counters.results_runtime + counters.results_cleanup == len(ids)
    assert counters.input_rows == sum(map(len, taken))


@given(histories())
def test_a_history_is_told_as_a_test_that_can_be_pasted(history: History) -> None:
    found: list[History] = []
    names = {"Limits": Limits, "CompactionLimits": CompactionLimits, "Path": Path}
    names["check"] = lambda history, _: found.append(history)
    exec(pasted("check", history).split("\n\n", 1)[1], names)
    names["test_a_history_that_failed"](None)
    assert found == [history]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_payload_differs_from_row_to_row(kind: str) -> None:
    """Otherwise a history could not tell one row from another."""
    values = column(kind, range(40)).to_pylist()
    assert len(set(map(repr, values))) > 2
    assert None in values


def test_merges_do_not_change_the_order_of_matches_inside_a_row(tmp_path: Path) -> None:
    """An epoch writes a run per row; a merge takes two of three while a probe is in the middle of a row."""
    plan = operator(2, 1, exact=True)
    sink = ListSink(str(tmp_path / "staging"))
    limits, two_runs = Limits(results=2, round_bytes=16), CompactionLimits(fanout=2, max_bytes=2_000)
    config = EngineConfig(1, 1, str(tmp_path / "tier"), limits, two_runs)
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    rows = [(0, number, 1) for number in range(3)] + [(1, 100, 1)]
    engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(rows, 1000)), 0)
    written = [run.bytes for run in engine.manifest.runs.values()]
    assert len(written) == 3
    assert sum(written[:2]) <= two_runs.max_bytes < sum(written)
    assert engine.manifest.mid_row_groups
    while engine.has_pending:
        engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)
    assert sorted(sink.rows()) == [(0, 100), (1, 100), (2, 100)]


def test_a_key_that_fills_many_epochs_under_a_budget_gives_every_result_once(tmp_path: Path) -> None:
    plan = JoinOperator(
        inputs=(WireInput("a", ("id", "p"), ("s0", "s1")), WireInput("b", ("id",), ("s0",))),
        outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
        residual=None,
        key_columns=((), ()),
        groups=1,
        result_schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]),
    )
    many, few = 9_000, 12
    ids = np.concatenate([np.arange(many), np.arange(few)])
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(np.repeat([0, 1], [many, few]).astype(np.int8)),
            pa.array(np.zeros(many + few, dtype=np.int64)),
            pa.array(ids),
            pa.array([f"{number:0200d}" for number in ids]),
        ],
        names=["t", "h", "s0", "s1"],
    )
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 1, str(tmp_path / "tier"), Limits(results=5_000), budget=Budget(4 << 20))
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    engine.run_epoch(LocalCluster(Graph.of_one(plan), batch, 500), 0)
    while engine.has_pending:
        engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)))
    tables = [table for epoch in sink.epochs.values() for table in epoch]
    found = pa.concat_tables(tables)
    numbers = np.sort(found.column("a").to_numpy() * few + found.column("b").to_numpy())
    assert np.array_equal(numbers, np.arange(many * few))


class ForgetfulSink(ListSink):
    """Fails once, like a store that is out of reach for a moment."""

    fails = False

    def commit(self, epoch: StagedEpoch) -> None:
        if self.fails:
            self.fails = False
            raise OSError("out of reach")
        super().commit(epoch)


def test_a_row_that_a_probe_stopped_inside_is_finished_before_results_are_deferred(tmp_path: Path) -> None:
    graph, sink = Graph.of_one(operator(2, 1, exact=True)), ListSink(str(tmp_path / "staging"))
    tier = str(tmp_path / "tier")
    early = open_engine(tmp_path, EngineConfig(1, 1, tier, Limits(results=2)), graph, sink)
    early.run_epoch(LocalCluster(graph, wire([(0, number, 1) for number in range(5)], 1000)), 0)
    early.run_epoch(LocalCluster(graph, wire([(1, 9, 1)], 1000)), 1)
    assert early.manifest.mid_row_groups
    deferred = open_engine(tmp_path, EngineConfig(1, 1, tier, Limits(), deferred=True), graph, sink)
    while deferred.has_pending:
        deferred.run_epoch(LocalCluster(graph), None)
    while deferred.has_cleanup:
        deferred.run_cleanup_epoch(LocalCluster(graph))
    assert Counter(sink.rows()) == Counter((number, 9) for number in range(5))


def test_an_epoch_does_not_overtake_one_that_the_sink_refused(tmp_path: Path) -> None:
    """The clean-up that a user asked for fails in his thread; the stream goes on."""
    plan = operator(2, 1, exact=True)
    sink = ForgetfulSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 1, str(tmp_path / "tier"))
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    engine.controller.spill = ScriptedSpills([1, 0])  # type: ignore[assignment]
    engine.run_epoch(LocalCluster(Graph.of_one(plan), wire([(0, 1, 1)], 1000)), 0)
    engine.run_epoch(LocalCluster(Graph.of_one(plan), wire([(1, 2, 1)], 1000)), 1)
    sink.fails = True
    with pytest.raises(OSError, match="out of reach"):
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)))
    engine.run_epoch(LocalCluster(Graph.of_one(plan), wire([(0, 3, 2), (1, 4, 2)], 1000)), 2)
    assert sorted(sink.rows()) == [(1, 2), (3, 4)]
