"""Sliding windows: late rows, spills and clean-ups in any history give the join that windows define."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.manager.budget import Budget
from spillway.manager.engine import Cleaning, Engine
from spillway.manager.engine_config import EngineConfig
from spillway.manager.journal import Journal
from spillway.model.window import Window
from spillway.plan.expression import ColumnRef
from spillway.plan.window_rule import within_windows
from spillway.policy.turns import TURNS
from spillway.state.compaction import CompactionLimits
from spillway.state.operator import JoinOperator, WireInput
from spillway.state.orders import Limits
from spillway.state.storage import Storage
from spillway.testing import ListSink, LocalCluster, ScriptedSpills

MIX = np.uint64(0x9E3779B97F4A7C15)
STEP_US = 10
"""How far event time moves from batch to batch."""
Row = tuple[int, int, int, int]
"""Input, id, key, event time."""


def operator(windows: tuple[Window, ...], groups: int) -> JoinOperator:
    inputs = len(windows)
    return JoinOperator(
        inputs=tuple(WireInput(f"s{number}", ("id", "ts"), ("s0", "s1")) for number in range(inputs)),
        outputs=tuple(ColumnRef(number, 0) for number in range(inputs)),
        residual=within_windows(windows, None),
        key_columns=((),) * inputs,
        groups=groups,
        result_schema=pa.schema([(f"id{number}", pa.int64()) for number in range(inputs)]),
        windows=windows,
    )


def wire(rows: list[Row]) -> pa.RecordBatch:
    tags, ids, keys, times = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    hashes = (keys.astype(np.uint64) * MIX).view(np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(tags.astype(np.int8)), pa.array(hashes), pa.array(ids), pa.array(times)],
        names=["t", "h", "s0", "s1"],
    )


def by_definition(windows: tuple[Window, ...], rows: list[Row]) -> Counter[tuple[int, ...]]:
    """DuckDB's answer over the rows that were not late."""
    inputs = range(len(windows))
    youngest = f"greatest({', '.join(f's{n}.ts' for n in inputs)})"
    ranged = [(n, window.range_us) for n, window in enumerate(windows) if window.range_us is not None]
    conditions = [f"s0.k = s{n}.k" for n in inputs if n] + [f"{youngest} - s{n}.ts <= {r}" for n, r in ranged]
    with duckdb.connect() as database:
        for number in inputs:
            own = [row[1:] for row in rows if row[0] == number]
            columns = list(zip(*own, strict=True)) or [(), (), ()]
            table = pa.table([pa.array(column, pa.int64()) for column in columns], names=["id", "k", "ts"])
            database.register(f"s{number}", table)
        names = ", ".join(f"s{n}.id" for n in inputs)
        tables = ", ".join(f"s{n}" for n in inputs)
        answer = database.sql(f"SELECT {names} FROM {tables} WHERE {' AND '.join(conditions)}").fetchall()
    return Counter(answer)


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    inputs = draw(st.sampled_from([2, 2, 3]))
    chance = Random(draw(st.integers(0, 1 << 32)))
    back = draw(st.sampled_from([4, 12, 25]))
    keys = draw(st.sampled_from([1, 2, 5]))

    def epoch() -> list[tuple[int, int, int]]:
        size = chance.choice([0, 5, 10, 16])
        return [
            (chance.randrange(inputs), chance.randrange(keys), chance.randint(-back, 12)) for _ in range(size)
        ]

    return {
        "windows": tuple(
            Window(
                column=1,
                range_us=draw(st.sampled_from([0, 5, 12, 20, 30, None])),
                lateness_us=draw(st.sampled_from([0, 0, 7, 20])),
            )
            for _ in range(inputs)
        ),
        "epochs": [epoch() for _ in range(draw(st.integers(0, 14)))],
        "groups": draw(st.sampled_from([1, 3, 8])),
        "processors": draw(st.integers(1, 2)),
        "limits": Limits(
            rows=draw(st.sampled_from([8, 1000, 1000])),
            results=draw(st.sampled_from([20, 10_000, 10_000])),
            chunk_rows=draw(st.sampled_from([16, 1000])),
            block_rows=draw(st.sampled_from([4, 1000])),
        ),
        "fanout": draw(st.sampled_from([2, 2, 4])),
        "spills": draw(st.lists(st.one_of(st.just(0), st.integers(0, 255)), max_size=14)),
        "cleanups": draw(st.lists(st.sampled_from([None, None, *Cleaning]), max_size=14)),
        "restart": draw(st.integers(0, 14)),
        "rotation": draw(st.one_of(st.none(), rotations())),
    }


def rotations() -> st.SearchStrategy[dict[str, Any]]:
    """Groups take turns under a small budget, and users ask for another number of processors."""
    return st.fixed_dictionaries(
        {
            "memory": st.sampled_from([12 << 10, 60 << 10, 160 << 10]),
            "gap": st.sampled_from([0.0, 3600.0]),
            "turns": st.sampled_from(TURNS),
            "backlog": st.sampled_from([0, 300, 1 << 30, None]),
            "sizes": st.lists(st.integers(0, 3), max_size=14),
        }
    )


@settings(max_examples=settings().max_examples // 2)
@given(histories())
def test_every_history_gives_the_window_join_by_definition(
    quick_directory: Callable[[], Path], history: dict[str, Any]
) -> None:
    directory = quick_directory()
    with (
        mock.patch("spillway.manager.budget.MINIMUM_BYTES", 1),
        mock.patch("spillway.manager.budget.WORKING_BYTES", 1),
    ):
        try:
            check(history, directory)
        finally:
            shutil.rmtree(directory)


def check(history: dict[str, Any], directory: Path) -> None:
    windows = history["windows"]
    plan = operator(windows, history["groups"])
    sink = ListSink(str(directory / "staging"))
    config = EngineConfig(
        processors=min(history["processors"], history["groups"]),
        groups=history["groups"],
        tier=str(directory / "tier"),
        limits=replace(history["limits"]),
        compaction=CompactionLimits(fanout=history["fanout"]),
        budget=Budget(16 << 20),
    )
    rotation = history["rotation"]
    if rotation is not None:
        config = replace(
            config,
            limits=replace(config.limits, results=10_000),
            budget=Budget(rotation["memory"]),
            rotation=True,
            rotation_gap_seconds=rotation["gap"],
            rotation_turns=rotation["turns"],
            rotation_backlog_bytes=rotation["backlog"],
        )
    sizes = [] if rotation is None else list(rotation["sizes"])
    probed = 0

    def run(engine: Engine, rows: list[Row], batch_id: int | None, *, ending: bool = False) -> None:
        nonlocal probed
        cluster = LocalCluster(plan, wire(rows) if rows else None)
        entry = engine.run_epoch(cluster, batch_id, ending=ending)
        assert entry["sequence"] < 2_000, "the turns do not come to an end"
        probed += sum(one["probed_rows"] for one in entry["processors"])
        assert entry["pending_rows"] == len(in_time) - probed

    spills = ScriptedSpills(list(history["spills"]))
    cleanups = list(history["cleanups"])
    in_time: list[Row] = []
    latest: list[int | None] = [None for _ in windows]
    watermark: int | None = None
    late = 0

    def opened() -> Engine:
        engine = Engine(config, plan, "q", Storage(str(directory / "checkpoint")), sink, Journal(None))
        if rotation is None:
            engine.controller.spill = spills  # type: ignore[assignment]
        return engine

    engine = opened()
    ids = 0
    for batch_id, epoch in enumerate(history["epochs"]):
        if batch_id == history["restart"]:
            engine = opened()
        rows: list[Row] = []
        for tag, key, offset in epoch:
            rows.append((tag, ids, key, batch_id * STEP_US + offset))
            ids += 1
        fresh = [row for row in rows if watermark is None or row[3] >= watermark]
        late += len(rows) - len(fresh)
        in_time += fresh
        while engine.has_begun_cleanup:
            engine.run_cleanup_epoch(LocalCluster(plan), Cleaning.BEGUN)
        size = sizes.pop() if sizes else 0
        if size:
            engine.controller.resize(engine.manifest, min(size, history["groups"]))
        run(engine, rows, batch_id)
        while engine.has_backlog:
            run(engine, [], None)
        for tag, _, _, time in rows:
            known = latest[tag]
            latest[tag] = time if known is None else max(known, time)
        if all(time is not None for time in latest):
            reached = min(
                time - window.lateness_us
                for time, window in zip(latest, windows, strict=True)
                if time is not None
            )
            watermark = reached if watermark is None else max(watermark, reached)
        assert engine.manifest.watermark == watermark
        cleaning = cleanups.pop() if cleanups else None
        if cleaning not in (None, Cleaning.NONE):
            engine.run_cleanup_epoch(LocalCluster(plan), cleaning)
    while engine.has_begun_cleanup:
        engine.run_cleanup_epoch(LocalCluster(plan), Cleaning.BEGUN)
    while engine.has_pending or engine.has_held:
        run(engine, [], None, ending=True)
    assert engine.manifest.pending_rows == 0
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(plan))
    assert Counter(sink.rows()) == by_definition(windows, in_time)
    assert engine.manifest.counters.late_rows == late


def test_expired_rows_leave_memory_and_disk(tmp_path: Path) -> None:
    windows = (Window(1, 30, 0), Window(1, 30, 5))
    plan = operator(windows, 8)
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 8, str(tmp_path / "tier"), budget=Budget(16 << 20))
    engine = Engine(config, plan, "q", Storage(str(tmp_path / "checkpoint")), sink, Journal(None))
    spills = ScriptedSpills([0b1111_0000 if epoch % 7 == 3 else 0 for epoch in range(200)])
    engine.controller.spill = spills  # type: ignore[assignment]
    rows = [(tag, n, n % 40, n // 10) for n in range(20_000) for tag in (0, 1)]
    held = []
    for batch_id in range(100):
        part = rows[batch_id * 400 : (batch_id + 1) * 400]
        engine.run_epoch(LocalCluster(plan, wire(part)), batch_id)
        while engine.has_lagging or engine.has_begun_cleanup:
            engine.run_cleanup_epoch(LocalCluster(plan), Cleaning.LAGGING)
        held.append(sum(run.rows for run in engine.manifest.runs.values()))
    assert max(held[50:]) < 4_000  # a window holds 30 * 10 rows of each input; nothing piles up
    assert max(held[50:]) <= 1.5 * max(held[20:50])
    assert engine.manifest.counters.expired_rows > 20_000
    resident = sum(path.stat().st_size for path in (tmp_path / "tier").rglob("*.image"))
    assert resident < 500_000
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(plan))
    assert Counter(sink.rows()) == by_definition(windows, [tuple(row) for row in rows])


def test_rows_on_disk_stay_while_older_input_waits_for_them(tmp_path: Path) -> None:
    """What is pending came in under a lower watermark: it may still need rows that are too old for others."""
    windows = (Window(1, 10, 0), Window(1, 10, 0))
    plan = operator(windows, 2)
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 2, str(tmp_path / "tier"), Limits(rows=1), budget=Budget(16 << 20))
    engine = Engine(config, plan, "q", Storage(str(tmp_path / "checkpoint")), sink, Journal(None))
    engine.controller.spill = ScriptedSpills([0b10, 0])  # type: ignore[assignment]
    partner, waits = (0, 0, 0, 5), (1, 1, 0, 10)
    engine.run_epoch(LocalCluster(plan, wire([partner])), 0)
    engine.run_epoch(LocalCluster(plan), None)  # the partner is a generation on disk now
    rows = [(0, 2, 1, 10), (0, 3, 1, 1000), (1, 4, 1, 1000), waits]  # key 1 is in the other group
    engine.run_epoch(LocalCluster(plan, wire(rows)), 1)
    assert engine.manifest.watermark == 1000
    while engine.has_pending:
        engine.run_epoch(LocalCluster(plan), None)
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(plan))
    assert Counter(sink.rows()) == by_definition(windows, [partner, *rows])


def test_event_times_are_exact_beside_inputs_that_lack_the_slot(tmp_path: Path) -> None:
    """A microsecond of the far future is not a whole number of floating point."""
    windows = (Window(1, 10, 0), Window(0, 10, 0))
    both = operator(windows, 1)
    plan = replace(both, inputs=(both.inputs[0], WireInput("s1", ("ts",), ("s0",))))
    plan = replace(plan, outputs=plan.outputs[:1], result_schema=pa.schema([("id0", pa.int64())]))
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 1, str(tmp_path / "tier"))
    engine = Engine(config, plan, "q", Storage(str(tmp_path / "checkpoint")), sink, Journal(None))
    time = (1 << 60) + 101
    tags, hashes = pa.array([0, 1], pa.int8()), pa.array([5, 5], pa.int64())
    for batch_id in range(2):
        ids, times = pa.array([batch_id, time], pa.int64()), pa.array([time, None], pa.int64())
        batch = pa.RecordBatch.from_arrays([tags, hashes, ids, times], names=["t", "h", "s0", "s1"])
        engine.run_epoch(LocalCluster(plan, batch), batch_id)
        assert engine.manifest.watermark == time
    assert engine.manifest.counters.late_rows == 0
    assert Counter(sink.rows()) == {(0,): 2, (1,): 2}
