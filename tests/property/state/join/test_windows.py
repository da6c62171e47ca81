"""Sliding windows: late rows, spills and clean-ups in any history give the join that windows define."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.examples import tries
from kit.histories import Check, History, Player, drawn, open_engine
from kit.payload import KINDS, column, kind_type, value
from spillway.manager.budget import Budget
from spillway.manager.cleanup import Cleaning
from spillway.manager.config import EngineConfig
from spillway.model.window import Window
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.rules.window_rule import within_windows
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import Limits
from spillway.state.step.operator import WireInput
from spillway.testing import ListSink, LocalCluster, ScriptedSpills

MIX = np.uint64(0x9E3779B97F4A7C15)
STEP_US = 10
"""How far event time moves from batch to batch."""
Row = tuple[int, int, int, int | None]
"""Input, id, key, event time."""


def operator(windows: tuple[Window, ...], groups: int, payloads: tuple[str | None, ...] = ()) -> JoinOperator:
    inputs = len(windows)
    carrying = {number: kind for number, kind in enumerate(payloads) if kind is not None}
    return JoinOperator(
        inputs=tuple(
            WireInput(f"s{n}", ("id", "ts", "p"), ("s0", "s1", f"p{n}"))
            if n in carrying
            else WireInput(f"s{n}", ("id", "ts"), ("s0", "s1"))
            for n in range(inputs)
        ),
        outputs=(*(ColumnRef(n, 0) for n in range(inputs)), *(ColumnRef(n, 2) for n in carrying)),
        residual=within_windows(windows, None),
        key_columns=((),) * inputs,
        groups=groups,
        result_schema=pa.schema(
            [
                *((f"id{number}", pa.int64()) for number in range(inputs)),
                *((f"p{number}", kind_type(kind)) for number, kind in carrying.items()),
            ]
        ),
        windows=windows,
    )


def wire(rows: list[Row], payloads: tuple[str | None, ...] = ()) -> pa.RecordBatch:
    *plain, times = zip(*rows, strict=True)
    tags, ids, keys = (np.array(column, dtype=np.int64) for column in plain)
    hashes = (keys.astype(np.uint64) * MIX).view(np.int64)
    carried = {
        f"p{number}": column(kind, [row[1] if row[0] == number else None for row in rows])
        for number, kind in enumerate(payloads)
        if kind is not None
    }
    return pa.RecordBatch.from_arrays(
        [
            pa.array(tags.astype(np.int8)),
            pa.array(hashes),
            pa.array(ids),
            pa.array(times, pa.int64()),
            *carried.values(),
        ],
        names=["t", "h", "s0", "s1", *carried],
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


def matches(inputs: int, rows: list[Row]) -> int:
    """Combinations of equal keys, in the window or not: each counts as a result where an epoch stops."""
    counts = Counter((row[0], row[2]) for row in rows)
    return sum(prod(counts[n, key] for n in range(inputs)) for key in {row[2] for row in rows})


@st.composite
def histories(draw: st.DrawFn) -> History:
    inputs = draw(st.sampled_from([2, 2, 3]))
    chance = Random(draw(st.integers(0, 1 << 32)))
    back = draw(st.sampled_from([4, 12, 25]))
    keys = draw(st.sampled_from([1, 2, 5]))

    nulls = draw(st.sampled_from([0.0, 0.2, 0.7]))

    def epoch() -> list[tuple[int, int, int | None]]:
        """Input, key, and event time from the start of the epoch, of each row."""
        size = chance.choice([0, 5, 10, 16])
        times = [None if chance.random() < nulls else chance.randint(-back, 12) for _ in range(size)]
        return [(chance.randrange(inputs), chance.randrange(keys), time) for time in times]

    payload = st.one_of(st.none(), st.sampled_from(sorted(KINDS)))
    return {
        "windows": tuple(
            Window(
                column=1,
                range_us=draw(st.sampled_from([0, 5, 12, 20, 30, None])),
                lateness_us=draw(st.sampled_from([0, 0, 7, 20])),
            )
            for _ in range(inputs)
        ),
        "payloads": tuple(draw(payload) for _ in range(inputs)),
        "epochs": [epoch() for _ in range(draw(st.integers(0, 10)))],
        **drawn(draw, [1, 3, 8]),
    }


@pytest.mark.histories
@tries(everyday=4)
@given(histories())
def test_every_history_gives_the_window_join_by_definition(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


def check(history: History, directory: Path) -> None:
    windows, payloads = history["windows"], history["payloads"]
    plan = operator(windows, history["groups"], payloads)
    in_time: list[Row] = []
    latest: list[int | None] = [None for _ in windows]
    watermarks: list[int | None] = []
    batches: list[pa.RecordBatch | None] = []
    ids = late = timeless = 0
    for number, epoch in enumerate(history["epochs"]):
        rows: list[Row] = []
        for tag, key, offset in epoch:
            rows.append((tag, ids, key, None if offset is None else number * STEP_US + offset))
            ids += 1
        watermark = watermarks[-1] if watermarks else None
        timed = [row for row in rows if row[3] is not None]
        fresh = [row for row in timed if watermark is None or row[3] >= watermark]
        timeless += len(rows) - len(timed)
        late += len(timed) - len(fresh)
        in_time += fresh
        batches.append(wire(rows, payloads) if rows else None)
        for tag, _, _, time in timed:
            known = latest[tag]
            latest[tag] = time if known is None else max(known, time)
        if all(time is not None for time in latest):
            reached = min(
                time - window.lateness_us
                for time, window in zip(latest, windows, strict=True)
                if time is not None
            )
            watermark = reached if watermark is None else max(watermark, reached)
        watermarks.append(watermark)
    wanted = by_definition(windows, in_time)
    player = Player(history, Graph.of_one(plan), directory, matches(len(windows), in_time))

    def after(number: int) -> None:
        assert player.engine.manifest.watermark == watermarks[number]

    player.play(batches, after)
    carried = Counter(
        {
            repr((*of, *(value(kind, id_) for kind, id_ in zip(payloads, of, strict=True) if kind))): count
            for of, count in wanted.items()
        }
    )
    assert Counter(map(repr, player.sink.rows())) == carried
    assert player.engine.manifest.counters.late_rows == late
    assert player.engine.manifest.counters.null_time_rows == timeless


@pytest.mark.slow
def test_expired_rows_leave_memory_and_disk(tmp_path: Path) -> None:
    windows = (Window(1, 30, 0), Window(1, 30, 5))
    plan = operator(windows, 8)
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 8, str(tmp_path / "tier"), budget=Budget(16 << 20))
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    spills = ScriptedSpills([0b1111_0000 if epoch % 7 == 3 else 0 for epoch in range(200)])
    engine.controller.spill = spills  # type: ignore[assignment]
    rows = [(tag, n, n % 40, n // 10) for n in range(20_000) for tag in (0, 1)]
    held = []
    for batch_id in range(100):
        part = rows[batch_id * 400 : (batch_id + 1) * 400]
        engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(part)), batch_id)
        while engine.has_expiring or engine.has_cursor:
            engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)), Cleaning.EXPIRING)
        held.append(sum(run.rows for run in engine.manifest.runs.values()))
    assert max(held[50:]) < 4_000  # a window holds 30 * 10 rows of each input; nothing piles up
    assert max(held[50:]) <= 1.5 * max(held[20:50])
    assert engine.manifest.counters.expired_rows > 20_000
    resident = sum(path.stat().st_size for path in (tmp_path / "tier").rglob("*.image"))
    assert resident < 500_000
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)))
    assert Counter(sink.rows()) == by_definition(windows, [tuple(row) for row in rows])


def test_rows_on_disk_stay_while_older_input_waits_for_them(tmp_path: Path) -> None:
    """What is pending came in under a lower watermark: it may still need rows that are too old for others."""
    windows = (Window(1, 10, 0), Window(1, 10, 0))
    plan = operator(windows, 2)
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 2, str(tmp_path / "tier"), Limits(rows=1), budget=Budget(16 << 20))
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    engine.controller.spill = ScriptedSpills([0b10, 0])  # type: ignore[assignment]
    partner, waits = (0, 0, 0, 5), (1, 1, 0, 10)
    engine.run_epoch(LocalCluster(Graph.of_one(plan), wire([partner])), 0)
    engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)  # the partner is a generation on disk now
    rows = [(0, 2, 1, 10), (0, 3, 1, 1000), (1, 4, 1, 1000), waits]  # key 1 is in the other group
    engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(rows)), 1)
    assert engine.manifest.watermark == 1000
    while engine.has_pending:
        engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)
    while engine.has_cleanup:
        engine.run_cleanup_epoch(LocalCluster(Graph.of_one(plan)))
    assert Counter(sink.rows()) == by_definition(windows, [partner, *rows])


def test_event_times_are_exact_beside_inputs_that_lack_the_slot(tmp_path: Path) -> None:
    """A microsecond of the far future is not a whole number of floating point."""
    windows = (Window(1, 10, 0), Window(0, 10, 0))
    both = operator(windows, 1)
    plan = replace(both, inputs=(both.inputs[0], WireInput("s1", ("ts",), ("s0",))))
    plan = replace(plan, outputs=plan.outputs[:1], result_schema=pa.schema([("id0", pa.int64())]))
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 1, str(tmp_path / "tier"))
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    time = (1 << 60) + 101
    tags, hashes = pa.array([0, 1], pa.int8()), pa.array([5, 5], pa.int64())
    for batch_id in range(2):
        ids, times = pa.array([batch_id, time], pa.int64()), pa.array([time, None], pa.int64())
        batch = pa.RecordBatch.from_arrays([tags, hashes, ids, times], names=["t", "h", "s0", "s1"])
        engine.run_epoch(LocalCluster(Graph.of_one(plan), batch), batch_id)
        assert engine.manifest.watermark == time
    assert engine.manifest.counters.late_rows == 0
    assert Counter(sink.rows()) == {(0,): 2, (1,): 2}
