"""Statistics over a stream: any history of late and early rows, limits, turns and restarts gives DuckDB's."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isclose
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.histories import Check, History, Player, drawn, open_engine
from kit.payload import KINDS, column, kind_type
from spillway.errors import CheckpointError
from spillway.manager.budget import Budget
from spillway.manager.config import EngineConfig
from spillway.manager.engine import Engine
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.file import Journal
from spillway.manager.relocation.protocol import RelocationLimits
from spillway.model.statistic import Frame, Statistic
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.expression.statistic_types import statistic_type
from spillway.state.frame.operator import FrameOperator
from spillway.state.graph.graph import Graph
from spillway.state.log.manifest_log import ManifestLog
from spillway.state.log.record import Counters, EpochRecord
from spillway.state.rows.compaction import CompactionLimits
from spillway.state.rows.group import group_of
from spillway.state.step.operator import WireInput
from spillway.state.storage.storage import Storage
from spillway.testing import ListSink, LocalCluster

MIX = np.uint64(0x9E3779B97F4A7C15)
STEP_US = 10
"""How far event time moves from batch to batch."""
NAMES = ("ts", "id", "x", "k", "note")
KEPT = 4
"""State does without the note."""
Row = tuple[int | None, int, int | None, int | None, str]
FRAMES = [Frame("rows", n) for n in (0, 2, 5)] + [Frame("range", n) for n in (0, 12, 40)]
SUMS = ("count", "sum", "min", "max", "stddev")
NUMBERS, OTHERS = ("count", "sum", "avg", "min", "max", "stddev"), ("count", "min", "max")
ARGUMENTS: dict[str, tuple[pa.DataType, Callable[[int], Any], tuple[str, ...]]] = {
    "bigint": (pa.int64(), int, NUMBERS),
    "binary": (pa.binary(), lambda n: f"{n:03d}".encode() * 9, OTHERS),
    "boolean": (pa.bool_(), lambda n: n % 3 == 0, OTHERS),
    "date": (pa.date32(), lambda n: date(1970, 1, 1) + timedelta(n), OTHERS),
    "decimal": (
        pa.decimal128(20, 3),
        lambda n: Decimal(n).scaleb(-3),
        ("count", "sum", "min", "max", "stddev"),
    ),
    "double": (pa.float64(), lambda n: n / 4, NUMBERS),
    "string": (pa.string(), lambda n: f"{n:03d}" * 9, OTHERS),
    "timestamp": (pa.timestamp("us"), lambda n: datetime(1970, 1, 1) + timedelta(0, n, n), OTHERS),
}
"""What a history can take statistics of: made from numbers, with the functions that it has."""
Kinds = tuple[str, str | None]
"""The kind of `x`, which state keeps, and that of the payload (see `payload`); None: the note of the row."""
PLAIN: Kinds = ("bigint", None)


def operator(
    statistics: tuple[Statistic, ...], lateness_us: int, groups: int, kinds: Kinds = PLAIN
) -> FrameOperator:
    types = [statistic_type(one.function, ARGUMENTS[kinds[0]][0]) for one in statistics]
    note = pa.string() if kinds[1] is None else kind_type(kinds[1])
    fields = [("id", pa.int64()), ("note", note), *((f"a{n}", kind) for n, kind in enumerate(types))]
    return FrameOperator(
        inputs=(WireInput("s", NAMES, tuple(f"s{n}" for n in range(len(NAMES)))),),
        outputs=(ColumnRef(0, 1), ColumnRef(0, 4), *(ColumnRef(1, n) for n in range(len(types)))),
        statistics=statistics,
        key_columns=(3,),
        time=0,
        order=(1,),
        kept=KEPT,
        lateness_us=lateness_us,
        groups=groups,
        result_schema=pa.schema(fields),
    )


def table(rows: list[Row], kinds: Kinds = PLAIN) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(NAMES)
    kind, make, _ = ARGUMENTS[kinds[0]]
    times, ids, keys = (pa.array(columns[number], pa.int64()) for number in (0, 1, 3))
    values = pa.array([None if number is None else make(number) for number in columns[2]], kind)
    notes = pa.array(columns[4], pa.string()) if kinds[1] is None else column(kinds[1], columns[1])
    return pa.table([times, ids, values, keys, notes], names=list(NAMES))


def wire(rows: list[Row], collide: int, kinds: Kinds = PLAIN) -> pa.RecordBatch:
    """Keys equal modulo `collide` share their hash."""
    keys = np.array([-1 if row[3] is None else row[3] for row in rows])
    hashes = ((keys % collide).astype(np.uint64) * MIX).view(np.int64)
    columns = table(rows, kinds).combine_chunks().to_batches()[0].columns
    tags = pa.array(np.zeros(len(rows), dtype=np.int8))
    names = ["t", "h", *(f"s{n}" for n in range(len(NAMES)))]
    return pa.RecordBatch.from_arrays([tags, pa.array(hashes), *columns], names=names)


def by_definition(
    statistics: tuple[Statistic, ...], rows: list[Row], kinds: Kinds = PLAIN
) -> dict[int, tuple[Any, ...]]:
    """DuckDB's answer over the rows that were not late."""
    calls = []
    for one in statistics:
        call = f"{one.function}({'*' if one.argument is None else NAMES[one.argument]})"
        order = "ts, id" if one.frame.kind == "rows" else "ts"
        frame = f"{one.frame.kind} BETWEEN {one.frame.preceding} PRECEDING AND CURRENT ROW"
        calls.append(f"{call} OVER (PARTITION BY k ORDER BY {order} {frame})")
    whole = table(rows, kinds)
    notes = dict(zip(whole.column("id").to_pylist(), whole.column("note").to_pylist(), strict=True))
    with duckdb.connect() as database:
        database.register("s", whole.drop_columns(["note"]))
        answer = database.sql(f"SELECT id, {', '.join(calls)} FROM s").fetchall()
    return {row[0]: (notes[row[0]], *row[1:]) for row in answer}


def assert_same(found: list[tuple[Any, ...]], wanted: dict[int, tuple[Any, ...]]) -> None:
    assert sorted(row[0] for row in found) == sorted(wanted)
    for id_, *values in found:
        for mine, theirs in zip(values, wanted[id_], strict=True):
            close = isinstance(mine, float) and isinstance(theirs, float)
            same = isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9) if close else mine == theirs
            assert same, (id_, values, wanted[id_])


@st.composite
def histories(draw: st.DrawFn) -> History:
    chance = Random(draw(st.integers(0, 1 << 32)))
    back = draw(st.sampled_from([3, 12, 25]))
    keys = draw(st.sampled_from([1, 2, 6]))
    argument = draw(st.sampled_from(sorted(ARGUMENTS)))
    functions = ARGUMENTS[argument][2]
    frames = draw(st.sampled_from([FRAMES, FRAMES[:3], FRAMES[3:], FRAMES[4:5]]))

    nulls = draw(st.sampled_from([0.0, 0.2, 0.7]))

    def row(id_: int, epoch: int) -> Row:
        time = None if chance.random() < nulls else epoch * STEP_US + chance.randint(-back, 12)
        number = None if chance.random() < 0.2 else chance.randint(-9, 99)
        return time, id_, number, chance.choice([*range(keys), None]), f"n{id_}"

    ids = iter(range(10_000))
    return {
        "argument": argument,
        "note": draw(st.one_of(st.none(), st.sampled_from(sorted(KINDS)))),
        "statistics": (
            Statistic("count", None, chance.choice(frames)),
            *(Statistic(f, 2, chance.choice(frames)) for f in chance.sample(functions, 3)),  # type: ignore[arg-type]
        ),
        "lateness": draw(st.sampled_from([0, 7, 20])),
        "epochs": [
            [row(next(ids), epoch) for _ in range(chance.choice([0, 5, 10, 16]))]
            for epoch in range(draw(st.integers(0, 9)))
        ],
        "collide": draw(st.sampled_from([2, 1000])),
        **drawn(draw, [1, 3, 8]),
        "spills": None,  # no group of such a view is ever split
    }


@pytest.mark.histories
@given(histories())
def test_every_history_gives_the_statistics_by_definition(
    play: Callable[[Check, History], None], history: History
) -> None:
    play(check, history)


def check(history: History, directory: Path) -> None:
    kinds = (history["argument"], history["note"])
    plan = operator(history["statistics"], history["lateness"], history["groups"], kinds)
    epochs = history["epochs"]
    in_time: list[Row] = []
    final: list[list[int]] = []
    """After each batch, the rows that no later one can precede."""
    watermarks: list[int | None] = []
    latest: int | None = None
    for rows in ([row for row in epoch if row[0] is not None] for epoch in epochs):
        before = watermarks[-1] if watermarks else None
        in_time += [row for row in rows if before is None or row[0] >= before]
        latest = max([row[0] for row in rows] + ([] if latest is None else [latest]), default=None)
        watermarks.append(None if latest is None else latest - history["lateness"])
        reached = watermarks[-1]
        final.append(sorted(row[1] for row in in_time if reached is not None and row[0] < reached))
    player = Player(history, Graph.of_one(plan), directory, len(in_time))
    stays = history["swaps"] is None and history["memory"] is None and not history["forced"]
    """No group ever leaves memory, so no final row waits."""

    def after(number: int) -> None:
        assert player.engine.manifest.watermark == watermarks[number]
        if stays and history["drain"]:
            assert sorted(row[0] for row in player.sink.rows()) == final[number]

    player.play([wire(rows, history["collide"], kinds) if rows else None for rows in epochs], after)
    assert_same(player.sink.rows(), by_definition(history["statistics"], in_time, kinds))
    manifest = player.engine.manifest
    timeless = sum(row[0] is None for rows in epochs for row in rows)
    assert manifest.counters.null_time_rows == timeless
    assert manifest.counters.late_rows == sum(map(len, epochs)) - len(in_time) - timeless
    assert manifest.pending_rows == 0
    assert not manifest.spilled_groups


def run_while(
    engine: Engine, plan: FrameOperator, busy: Callable[[Engine], bool], *, ending: bool = False
) -> list[EpochEntry]:
    """Epochs without input for as long as there is something to do, which must come to an end."""
    entries: list[EpochEntry] = []
    while busy(engine):
        entries.append(engine.run_epoch(LocalCluster(Graph.of_one(plan)), None, ending=ending))
        assert len(entries) < 1_000, "the turns do not come to an end"
    return entries


def stream(chance: np.random.Generator, batch_id: int, size: int, keys: int) -> list[Row]:
    """Rows of one batch, out of order by up to a batch, of frequent keys and rare ones."""
    times = batch_id * 1_000 + chance.integers(-1_000, 1_000, size)
    values, of = chance.integers(-50, 50, size), (keys * chance.random(size) ** 4).astype(np.int64)
    return [
        (int(time), batch_id * size + n, int(value), int(key), "x" * 100)
        for n, (time, value, key) in enumerate(zip(times, values, of, strict=True))
    ]


@pytest.mark.parametrize("most_bytes", [1 << 28, 6_000])
@pytest.mark.parametrize("frame", [Frame("rows", 9), Frame("range", 3_000)])
def test_rows_that_no_later_row_can_reach_leave_state(tmp_path: Path, frame: Frame, most_bytes: int) -> None:
    statistics = (Statistic("sum", 2, frame), Statistic("count", None, frame))
    plan = operator(statistics, 1_000, 8)
    sink = ListSink(str(tmp_path / "staging"))
    limits = CompactionLimits(max_bytes=most_bytes)
    config = EngineConfig(2, 8, str(tmp_path / "tier"), compaction=limits)
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    chance = np.random.default_rng(3)
    rows = [stream(chance, batch_id, 100, 40) for batch_id in range(30)]
    held = []  # rows in state; keys share two hashes, and are told apart
    for batch_id, batch in enumerate(rows):
        engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(batch, 2)), batch_id)
        while engine.has_pending:
            engine.run_epoch(LocalCluster(Graph.of_one(plan)), None)
        held.append(sum(state.rows for state in engine.manifest.groups.values()))
    assert max(held[15:]) < 1_500
    assert engine.manifest.counters.late_rows == 0
    assert engine.manifest.counters.expired_rows > 1_000
    while engine.has_waiting:
        engine.run_epoch(LocalCluster(Graph.of_one(plan)), None, ending=True)
    assert_same(sink.rows(), by_definition(statistics, [row for batch in rows for row in batch]))


def test_a_budget_suspends_groups_and_never_splits_them(tmp_path: Path) -> None:
    statistics = (Statistic("max", 2, Frame("rows", 20)), Statistic("avg", 2, Frame("range", 100_000)))
    plan = operator(statistics, 1_000, 16)
    sink = ListSink(str(tmp_path / "staging"))
    config = EngineConfig(1, 16, str(tmp_path / "tier"), budget=Budget(4 << 20))
    engine = open_engine(tmp_path, config, Graph.of_one(plan), sink)
    chance = np.random.default_rng(4)
    rows = [stream(chance, batch_id, 18_000, 6_000) for batch_id in range(7)]
    entries = []
    for batch_id, batch in enumerate(rows):
        entries.append(engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(batch, 10_000)), batch_id))
        while engine.has_pending:
            entries.append(engine.run_epoch(LocalCluster(Graph.of_one(plan)), None))
    assert any(entry.suspended_groups for entry in entries)
    while engine.has_pending or engine.has_waiting:
        entries.append(engine.run_epoch(LocalCluster(Graph.of_one(plan)), None, ending=True))
        assert len(entries) < 1_000, "the turns do not come to an end"
    assert not any(entry.spills for entry in entries)
    assert not engine.has_cleanup
    assert max(entry.processors[0].resident_bytes for entry in entries) <= 4 << 20
    assert_same(sink.rows(), by_definition(statistics, [row for batch in rows for row in batch]))


def run_within(
    directory: Path,
    plan: FrameOperator,
    config: EngineConfig,
    rows: list[list[Row]],
    before: Callable[[Engine, int], None] = lambda _engine, _batch: None,
) -> tuple[list[EpochEntry], list[tuple[Any, ...]]]:
    """All batches, each followed by what is pending, then the end of the input: journal entries, results."""
    sink = ListSink(str(directory / "staging"))
    engine = open_engine(directory, config, Graph.of_one(plan), sink)
    entries = []
    for batch_id, batch in enumerate(rows):
        before(engine, batch_id)
        entries.append(engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(batch, 10_000)), batch_id))
        entries += run_while(engine, plan, lambda engine: engine.has_backlog)
    entries += run_while(engine, plan, lambda engine: engine.has_pending or engine.has_waiting, ending=True)
    assert engine.manifest.pending_rows == 0
    assert not engine.has_cleanup
    assert not any(entry.spills for entry in entries)
    return entries, sink.rows()


def resized(engine: Engine, batch_id: int) -> None:
    if batch_id == 6:
        engine.controller.resize(engine.manifest, 1)


FORCED = {
    "productivity_threshold": 1.0,
    "minimum_fill": 0.0,
    "query_bytes": 1 << 40,
    "minimum_span_seconds": 0.0,
    "relocation_threshold": 0.01,
}


@pytest.mark.parametrize("kind", ["resize", pytest.param("active-disk", marks=pytest.mark.slow)])
def test_forced_out_of_memory_groups_are_suspended_and_never_split(tmp_path: Path, kind: str) -> None:
    statistics = (Statistic("max", 2, Frame("rows", 20)), Statistic("avg", 2, Frame("range", 100_000)))
    plan = operator(statistics, 1_000, 16)
    chance = np.random.default_rng(4)
    rows = [stream(chance, batch_id, 18_000, 6_000) for batch_id in range(8)]
    config = EngineConfig(2, 16, str(tmp_path / "tier"), budget=Budget(4 << 20))
    if kind == "active-disk":
        config = replace(config, adapt=kind, policy=FORCED, relocation=RelocationLimits(restart_epochs=0))
    before = resized if kind == "resize" else lambda _engine, _batch: None
    entries, found = run_within(tmp_path, plan, config, rows, before)
    assert len(entries[-1].processors) == (1 if kind == "resize" else 2)
    reasons = [swap.reason for entry in entries for swap in entry.swaps]
    assert any(reason.startswith("resize" if kind == "resize" else "productivity") for reason in reasons)
    assert_same(found, by_definition(statistics, [row for batch in rows for row in batch]))


@pytest.mark.slow
def test_a_group_larger_than_memory_is_processed_whole_and_said_to_be(tmp_path: Path) -> None:
    statistics = (Statistic("sum", 2, Frame("range", 100_000)),)
    plan = operator(statistics, 1_000, 2)
    chance = np.random.default_rng(4)
    rows = [stream(chance, batch_id, 30_000, 3_000) for batch_id in range(8)]
    config = EngineConfig(1, 2, str(tmp_path / "tier"), budget=Budget(4 << 20))
    entries, found = run_within(tmp_path, plan, config, rows)
    alone = [swap for entry in entries for swap in entry.swaps if "larger than memory" in swap.reason]
    assert alone
    assert all(swap.resumed.bit_count() == 1 for swap in alone)
    assert_same(found, by_definition(statistics, [row for batch in rows for row in batch]))


def test_a_checkpoint_with_split_groups_is_refused(tmp_path: Path) -> None:
    plan = operator((Statistic("sum", 2, Frame("rows", 3)),), 0, 4)
    storage = Storage(str(tmp_path / "checkpoint"))
    log = ManifestLog(storage)
    empty = log.load((0,) * 4)
    log.commit(empty, EpochRecord(0, log.token, 0, (), (), {}, {}, Counters(), spilled=0b101))
    config = EngineConfig(1, 4, str(tmp_path / "tier"))
    with pytest.raises(CheckpointError, match=r"groups \[0, 2\] .* start with an empty checkpoint"):
        Engine(config, Graph.of_one(plan), "q", storage, ListSink(str(tmp_path / "staging")), Journal(None))


def test_after_the_end_of_the_input_what_comes_with_an_earlier_time_is_late(tmp_path: Path) -> None:
    statistics = (Statistic("sum", 2, Frame("rows", 3)),)
    plan = operator(statistics, 50, 4)
    sink = ListSink(str(tmp_path / "staging"))
    storage = Storage(str(tmp_path / "checkpoint"))

    def ended(batch_id: int, rows: list[Row]) -> Engine:
        engine = Engine(
            EngineConfig(1, 4, str(tmp_path / "tier")), Graph.of_one(plan), "q", storage, sink, Journal(None)
        )
        engine.run_epoch(LocalCluster(Graph.of_one(plan), wire(rows, 1000)), batch_id)
        while engine.has_pending or engine.has_waiting:
            engine.run_epoch(LocalCluster(Graph.of_one(plan)), None, ending=True)
        return engine

    first: list[Row] = [(100 + n, n, n, 1, "a") for n in range(5)]
    second: list[Row] = [(104, 10, 1, 1, "late"), (105, 11, 7, 1, "b"), (120, 12, 8, 1, "c")]
    ended(0, first)
    engine = ended(1, second)
    assert engine.manifest.counters.late_rows == 1
    assert_same(sink.rows(), by_definition(statistics, first + second[1:]))


def test_rows_of_statistics_count_although_they_do_not_stay(tmp_path: Path) -> None:
    """A frame of one row keeps one row of each key: to rank by what stays would be to rank by keys."""
    plan = operator((Statistic("count", None, Frame("rows", 0)),), lateness_us=0, groups=4)
    rows = [(n, n, 1, 1 if n % 8 else 2, "n") for n in range(80)]
    batch = wire(rows, 1000)
    config = EngineConfig(2, 4, str(tmp_path / "tier"), adapt="flux-load")
    sink = ListSink(str(tmp_path / "staging"))
    engine = Engine(config, Graph.of_one(plan), "q", Storage(str(tmp_path / "state")), sink, Journal(None))
    engine.run_epoch(LocalCluster(Graph.of_one(plan), batch), 0)
    while engine.has_pending or engine.has_waiting:
        engine.run_epoch(LocalCluster(Graph.of_one(plan)), None, ending=True)
    served = Counter(group_of(batch.column("h").to_numpy(), 4).tolist())
    assert len(sink.rows()) == 80
    assert +engine.controller.statistics.group_rows == served
    assert sum(state.rows for state in engine.manifest.groups.values()) < 10
