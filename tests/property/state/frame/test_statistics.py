"""Statistics over frames against DuckDB: nulls, ties, several keys, collisions, all types and frames."""

from decimal import Decimal
from math import isclose, isnan
from random import Random
from statistics import stdev
from typing import Any
from zlib import crc32

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.examples import tries
from spillway.errors import ViewError
from spillway.model.statistic import Frame, Statistic
from spillway.state.frame.frames import ordered_rows
from spillway.state.frame.statistics import statistics_of

TOLERANCE = 1e-9
"""How far a double may be from DuckDB's, relative to it."""
NAMES = ("ts", "id", "i", "d", "f", "s", "k")
TYPES = (pa.int64(), pa.string(), pa.int64(), pa.decimal128(20, 3), pa.float64(), pa.string(), pa.string())
NUMBERS, OTHERS = ("count", "sum", "avg", "min", "max", "stddev"), ("count", "min", "max")
FUNCTIONS = {2: NUMBERS, 3: ("count", "sum", "min", "max", "stddev"), 4: NUMBERS, 5: OTHERS}


def rows(chance: Random, size: int, keys: int) -> list[tuple[Any, ...]]:
    def or_null(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    scale = chance.choice([1, 100])
    return [
        (
            chance.randrange(max(2, size // 2)),
            f"{number:05d}",
            or_null(chance.randint(-5, 5) + chance.choice([0, scale])),
            or_null(Decimal(chance.randint(-(10**6), 10**6) * scale).scaleb(-3)),
            or_null(chance.uniform(-1, 1) + scale),
            or_null(chance.choice("abcdef")),
            or_null(f"k{chance.randrange(keys)}"),
        )
        for number in chance.sample(range(size), size)
    ]


def table(of: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*of, strict=True)) or [()] * len(NAMES)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(NAMES))


def sql(one: Statistic) -> str:
    argument = "*" if one.argument is None else NAMES[one.argument]
    order = "ts, id" if one.frame.kind == "rows" else "ts"
    frame = f"{one.frame.kind} BETWEEN {one.frame.preceding} PRECEDING AND CURRENT ROW"
    return f"{one.function}({argument}) OVER (PARTITION BY k ORDER BY {order} {frame})"


def same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and theirs is not None:
        return (isnan(mine) and isnan(theirs)) or isclose(mine, theirs, rel_tol=TOLERANCE, abs_tol=1e-9)
    return bool(mine == theirs)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Random, int, int, list[Statistic], int]:
    frames = st.builds(Frame, st.sampled_from(["rows", "range"]), st.sampled_from([0, 1, 2, 5, 9, 40]))
    argument = draw(st.sampled_from(list(FUNCTIONS)))
    statistics = [Statistic("count", None, draw(frames))] + [
        Statistic(function, argument, draw(frames))  # type: ignore[arg-type]
        for function in FUNCTIONS[argument]
    ]
    size = draw(st.sampled_from([0, 1, 7, 40, 150]))
    keys = draw(st.sampled_from([1, 3, 30]))
    return Random(draw(st.integers(0, 1 << 32))), size, keys, statistics, draw(st.sampled_from([1, 2, 1000]))


@tries(2)
@given(cases())
def test_statistics_are_those_of_duckdb(case: tuple[Random, int, int, list[Statistic], int]) -> None:
    chance, size, keys, statistics, hashes = case
    batch = table(rows(chance, size, keys))
    codes = [crc32(str(key).encode()) % hashes for key in batch.column(6).to_pylist()]
    hashed = np.array(codes, dtype=np.int64)
    ordered = ordered_rows(hashed, batch, (6,), 0, (1,))
    at = np.flatnonzero(np.arange(size) % 3 != 1)
    found = statistics_of(statistics, batch, ordered, at)
    ids = batch.column(1).take(pa.array(ordered.rows[at])).to_pylist()
    mine = dict(zip(ids, zip(*(one.to_pylist() for one in found), strict=True), strict=True))
    with duckdb.connect() as database:
        database.register("t", pa.Table.from_batches([batch]))
        answer = database.sql(f"SELECT id, {', '.join(map(sql, statistics))} FROM t").fetchall()
    assert len(mine) == len(at)
    for id_, *values in answer:
        for one, expected in zip(mine.get(id_, values), values, strict=True):
            assert same(one, expected), (id_, mine[id_], values)


def frame_of(values: list[Any], kind: pa.DataType, function: Any, preceding: int = 9) -> list[Any]:
    count = len(values)
    batch = pa.RecordBatch.from_arrays([pa.array(range(count)), pa.array(values, kind)], names=["ts", "x"])
    ordered = ordered_rows(np.zeros(count, dtype=np.int64), batch, (), 0, ())
    one = Statistic(function, 1, Frame("rows", preceding))
    found: list[Any] = statistics_of([one], batch, ordered, np.arange(count))[0].to_pylist()
    return found


def test_deviations_far_from_zero_do_not_cancel() -> None:
    chance = Random(3)
    values = [10**12 + chance.uniform(-1, 1) for _ in range(200)]
    found = frame_of(values, pa.float64(), "stddev", 49)
    for end in range(2, len(values) + 1):
        assert isclose(found[end - 1], stdev(values[max(0, end - 50) : end]), rel_tol=TOLERANCE)


def test_large_values_before_a_frame_leave_no_trace_in_it() -> None:
    values = [1e300, float("inf"), float("nan"), 1e15 + 1, 1e15 + 2, 1e15 + 4]
    assert frame_of(values, pa.float64(), "sum", 1)[-1] == 2e15 + 6
    assert frame_of(values, pa.float64(), "stddev", 2)[-1] == pytest.approx(1.5275252316519468, rel=1e-12)


def test_sums_are_exact_up_to_the_limit_and_refused_beyond_it() -> None:
    largest = 2**63 - 1
    assert frame_of([largest - 5, 5, -7], pa.int64(), "sum", 1) == [largest - 5, largest, -2]
    with pytest.raises(ViewError, match="overflows"):
        frame_of([largest, 1], pa.int64(), "sum")
    assert frame_of([largest, 1, None], pa.int64(), "avg")[-1] == 2.0**62
    wide = pa.decimal128(38, 0)
    assert frame_of([Decimal(10**37), Decimal(-(10**37) - 1)], wide, "sum")[-1] == Decimal(-1)
    with pytest.raises(ViewError, match="38 digits"):
        frame_of([Decimal(10**38 - 1)] * 5, wide, "sum")


def test_nan_is_larger_than_any_number() -> None:
    values = [float("inf"), float("nan"), -1.0]
    assert frame_of(values, pa.float64(), "min")[-1] == -1.0
    assert isnan(frame_of(values, pa.float64(), "max")[-1])


def test_a_sum_that_overflows_is_named() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array([2**63 - 1] * 2)], names=["ts", "paid"])
    ordered = ordered_rows(np.zeros(2, dtype=np.int64), batch, (), 0, ())
    statistics = [Statistic("count", None, Frame("rows", 1)), Statistic("sum", 1, Frame("rows", 1))]
    labels = ("count(*) over 2 rows", "sum(paid) over 2 rows")
    with pytest.raises(ViewError, match=r"overflows; cast .* \(in sum\(paid\) over 2 rows\)"):
        statistics_of(statistics, batch, ordered, np.arange(2), labels)
