"""Any history of epochs, limits, restarts and lost memory gives the join by its definition, once."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.manager.budget import Budget
from spillway.manager.engine import Cleaning, Engine, Files
from spillway.manager.engine_config import EngineConfig
from spillway.manager.journal import Journal
from spillway.manager.relocation import RelocationLimits
from spillway.model.group_set import all_groups, members, union
from spillway.plan.expression import ColumnRef
from spillway.state.compaction import CompactionLimits
from spillway.state.manifest import Manifest
from spillway.state.memory_tier import MemoryTier
from spillway.state.operator import JoinOperator, WireInput
from spillway.state.orders import Limits, Orders, Report
from spillway.state.reference import join
from spillway.state.storage import Storage
from spillway.testing import ListSink, LocalCluster, ScriptedSpills, ScriptedSwaps

MIX = np.uint64(0x9E3779B97F4A7C15)


def operator(inputs: int, groups: int, *, exact: bool) -> JoinOperator:
    keys = () if exact else (1,)
    names = ("id",) if exact else ("id", "k")
    return JoinOperator(
        inputs=tuple(WireInput(f"s{number}", names, ("s0", "s1")[: len(names)]) for number in range(inputs)),
        outputs=tuple(ColumnRef(number, 0) for number in range(inputs)),
        residual=None,
        key_columns=(keys,) * inputs,
        groups=groups,
        result_schema=pa.schema([(f"id{number}", pa.int64()) for number in range(inputs)]),
    )


def wire(rows: list[tuple[int, int, int]], collide: int) -> pa.RecordBatch:
    """Rows of (input, id, key) as a batch; keys equal modulo `collide` share their hash."""
    tags, ids, keys = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    hashes = ((keys % collide).astype(np.uint64) * MIX).view(np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(tags.astype(np.int8)), pa.array(hashes), pa.array(ids), pa.array(keys)],
        names=["t", "h", "s0", "s1"],
    )


def requests() -> st.SearchStrategy[tuple[str, int, int]]:
    """What users ask for between epochs: moves of groups, another number of processors."""
    return st.tuples(
        st.sampled_from(["move", "nothing", "rebalance", "resize"]), st.integers(0, 255), st.integers(0, 3)
    )


def ask(engine: Engine, request: tuple[str, int, int]) -> None:
    kind, groups, number = request
    manifest = engine.manifest
    if kind == "move":
        engine.controller.move(manifest, groups & all_groups(len(manifest.placement)), number)
    elif kind == "rebalance":
        engine.controller.rebalance(manifest)
    elif kind == "resize":
        engine.controller.resize(manifest, min(number + 1, len(manifest.placement)))


@dataclass(frozen=True, slots=True)
class WatchedCluster(LocalCluster):
    """Sees that every group is on one processor."""

    def __call__(self, orders: Sequence[Orders]) -> list[Report]:
        groups = Counter(group for one in orders for group in members(one.groups))
        assert groups == Counter(range(self.operator.groups))
        for one in orders:
            assert not any(run.live & ~one.groups for run in one.runs)
            assert not any(run.live & one.groups for run in one.incoming)
        reports = LocalCluster.__call__(self, orders)
        for one in orders:
            allowed = one.groups | union(run.live for run in one.incoming)
            tier = MemoryTier(one.tier, self.operator.groups)
            assert not any(tier._open(path).contained & ~allowed for path in tier._images())
        return reports


@st.composite
def histories(draw: st.DrawFn, *, moving: bool = False) -> dict[str, Any]:
    """With `moving` there are several processors, and somebody asks for moves before every epoch."""
    inputs = draw(st.integers(2, 3 if moving else 5))
    many = 4 if moving else 0
    key = st.one_of(st.integers(0, 3), st.integers(0, 20))
    row = st.tuples(st.integers(0, inputs - 1), key)
    return {
        "inputs": inputs,
        "epochs": draw(st.lists(st.lists(row, min_size=many, max_size=14), min_size=many, max_size=7)),
        "groups": draw(st.sampled_from([5, 8] if moving else [1, 3, 8])),
        "processors": draw(st.lists(st.integers(2 if moving else 1, 3), min_size=1, max_size=3)),
        "collide": draw(st.sampled_from([5, 1000] if moving else [2, 5, 1000])),
        "limits": Limits(
            rows=draw(st.integers(1, 30)),
            results=draw(st.sampled_from([30, 10_000] if moving else [1, 2, 3, 7, 50, 10_000])),
            chunk_rows=draw(st.integers(1, 5)),
            block_rows=draw(st.integers(1, 6)),
            gather_rows=draw(st.sampled_from([1, 4, 1000])),
            round_bytes=draw(st.sampled_from([64, 400, 1 << 40, 1 << 40])),
            state_bytes=draw(st.sampled_from([9000, 1 << 62, 1 << 62])),
        ),
        "batch_rows": draw(st.sampled_from([None, 1, 3])),
        "fanout": draw(st.integers(2, 4)),
        "spills": draw(st.lists(st.integers(0, 255), max_size=8)),
        "swaps": draw(st.lists(st.integers(0, 255), max_size=10)),
        "cleanups": draw(st.lists(st.integers(0, 3), max_size=8)),
        "restore": draw(st.booleans()),
        "forget": draw(st.booleans()),
        "requests": draw(st.lists(requests(), min_size=2 * many, max_size=8)),
        "load_bytes": draw(st.sampled_from([1, 100, 1 << 20])),
        "piece_bytes": draw(st.sampled_from([200, 1 << 20])),
    }


@given(histories())
def test_every_history_gives_the_join_by_definition(
    quick_directory: Callable[[], Path], history: dict[str, Any]
) -> None:
    check_in(quick_directory, history)


@settings(max_examples=max(1, settings().max_examples // 2))
@given(histories(moving=True))
def test_moves_between_processors_change_no_result(
    quick_directory: Callable[[], Path], history: dict[str, Any]
) -> None:
    check_in(quick_directory, history)


def check_in(quick_directory: Callable[[], Path], history: dict[str, Any]) -> None:
    directory = quick_directory()
    with (
        mock.patch("spillway.manager.cleanup.PIECES", 1 << 40),
        mock.patch("spillway.manager.cleanup.PIECE_BYTES", history["piece_bytes"]),
    ):
        try:
            check(history, directory)
        finally:
            shutil.rmtree(directory)


def check(history: dict[str, Any], directory: Path) -> None:
    exact = history["collide"] == 1000
    plan = operator(history["inputs"], history["groups"], exact=exact)
    sink = ListSink(str(directory / "staging"))
    expected: list[list[dict[str, Any]]] = [[] for _ in range(history["inputs"])]
    batches = []
    for rows in history["epochs"]:
        tagged = []
        for tag, key in rows:
            tagged.append((tag, len(expected[tag]), key))
            expected[tag].append({"id": len(expected[tag]), "k": key})
        batches.append(wire(tagged, history["collide"]) if tagged else None)
    wanted = Counter(tuple(row["id"] for row in rows) for rows in join(expected, lambda _, row: row["k"]))
    capped = replace(history["limits"], results=max(history["limits"].results, sum(wanted.values()) // 40))
    sizes = [min(size, history["groups"]) for size in history["processors"]]
    batch_id = 0
    spills = ScriptedSpills(list(history["spills"]))
    swaps = ScriptedSwaps(list(history["swaps"]))
    cleanups = list(history["cleanups"])
    asked = list(history["requests"])
    before: Manifest | None = None
    for restart, processors in enumerate(sizes):
        config = EngineConfig(
            processors=processors,
            groups=history["groups"],
            tier=str(directory / "tier"),
            limits=capped,
            compaction=CompactionLimits(fanout=history["fanout"]),
            budget=Budget(16 << 20) if history["restore"] else None,
            relocation=RelocationLimits(load_bytes=history["load_bytes"], wait_epochs=2),
        )
        engine = Engine(config, plan, "q", Storage(str(directory / "checkpoint")), sink, Journal(None))
        if before is not None and before.processor_count == processors:
            assert engine.manifest.placement == before.placement  # what moved stays where it is
        engine.controller.spill = spills  # type: ignore[assignment]
        engine.controller.rotation = swaps  # type: ignore[assignment]
        last = restart == len(sizes) - 1
        stop = len(batches) if last else (restart + 1) * len(batches) // len(sizes)
        while batch_id < stop:
            while engine.has_begun_cleanup:
                engine.run_cleanup_epoch(LocalCluster(plan), Cleaning.BEGUN)
            if asked:
                ask(engine, asked.pop())
            engine.run_epoch(WatchedCluster(plan, batches[batch_id], history["batch_rows"]), batch_id)
            assert engine.has_taken(batch_id)
            batch_id += 1
            if history["forget"]:
                shutil.rmtree(directory / "tier", ignore_errors=True)
            for _ in range(cleanups.pop() if cleanups else 0):
                if engine.has_room:
                    engine.run_cleanup_epoch(LocalCluster(plan), Cleaning.FITTING)
                elif engine.has_cleanup:
                    engine.run_cleanup_epoch(LocalCluster(plan))
        before = engine.manifest
        while last and engine.has_begun_cleanup:
            engine.run_cleanup_epoch(LocalCluster(plan), Cleaning.BEGUN)
        while last and (engine.has_pending or engine.has_held):
            if asked:
                ask(engine, asked.pop())
            engine.run_epoch(WatchedCluster(plan), None, ending=True)
        while last and engine.has_cleanup:
            engine.run_cleanup_epoch(LocalCluster(plan))
    assert Counter(sink.rows()) == wanted
    counters = engine.manifest.counters
    assert counters.results_runtime + counters.results_cleanup == sum(wanted.values())
    assert engine.manifest.counters.input_rows == sum(len(rows) for rows in expected)


def test_merges_do_not_change_the_order_of_matches_inside_a_row(tmp_path: Path) -> None:
    """An epoch writes a run per row; a merge takes two of three while a probe is in the middle of a row."""
    plan = operator(2, 1, exact=True)
    sink = ListSink(str(tmp_path / "staging"))
    limits, two_runs = Limits(results=2, round_bytes=16), CompactionLimits(fanout=2, max_bytes=2_000)
    config = EngineConfig(1, 1, str(tmp_path / "tier"), limits, two_runs)
    engine = Engine(config, plan, "q", Storage(str(tmp_path / "checkpoint")), sink, Journal(None))
    rows = [(0, number, 1) for number in range(3)] + [(1, 100, 1)]
    engine.run_epoch(LocalCluster(plan, wire(rows, 1000)), 0)
    written = [run.bytes for run in engine.manifest.runs.values()]
    assert len(written) == 3
    assert sum(written[:2]) <= two_runs.max_bytes < sum(written)
    assert engine.manifest.unfinished_groups
    while engine.has_pending:
        engine.run_epoch(LocalCluster(plan), None)
    assert sorted(sink.rows()) == [(0, 100), (1, 100), (2, 100)]


class ForgetfulSink(ListSink):
    """Fails once, like a store that is out of reach for a moment."""

    fails = False

    def commit_files(self, sequence: int, files: Files) -> None:
        if self.fails:
            self.fails = False
            raise OSError("out of reach")
        super().commit_files(sequence, files)


def test_an_epoch_does_not_overtake_one_that_the_sink_refused(tmp_path: Path) -> None:
    """The clean-up that a user asked for fails in his thread; the stream goes on."""
    plan = operator(2, 1, exact=True)
    sink = ForgetfulSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 1, str(tmp_path / "tier"))
    engine = Engine(config, plan, "q", Storage(str(tmp_path / "checkpoint")), sink, Journal(None))
    engine.controller.spill = ScriptedSpills([1, 0])  # type: ignore[assignment]
    engine.run_epoch(LocalCluster(plan, wire([(0, 1, 1)], 1000)), 0)
    engine.run_epoch(LocalCluster(plan, wire([(1, 2, 1)], 1000)), 1)
    sink.fails = True
    with pytest.raises(OSError, match="out of reach"):
        engine.run_cleanup_epoch(LocalCluster(plan))
    engine.run_epoch(LocalCluster(plan, wire([(0, 3, 2), (1, 4, 2)], 1000)), 2)
    assert sorted(sink.rows()) == [(1, 2), (3, 4)]
