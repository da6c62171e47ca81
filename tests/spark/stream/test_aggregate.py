"""Statistics over a stream on Spark: by withWatermark and by job file, late rows, nulls, a restart."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import isclose
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spillway.errors import CheckpointError

START = datetime(2026, 3, 29, tzinfo=UTC)
LATENESS = timedelta(seconds=4)
ROWS = "OVER (PARTITION BY sym ORDER BY ts, id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"
RANGE = "OVER (PARTITION BY sym ORDER BY ts RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW)"
LONG = "(PARTITION BY sym ORDER BY ts RANGE BETWEEN INTERVAL 1 HOURS PRECEDING AND CURRENT ROW)"
VIEW = f"""SELECT id, sym, ts, price, avg(price) {ROWS} AS a, count(*) {RANGE} AS n, sum(paid) {ROWS} AS s,
    min(sym) {RANGE} AS low, max(id) {RANGE} AS high, stddev(price) {ROWS} AS d FROM prices WHERE id <> 7"""
SCHEMA = pa.schema(
    [
        ("sym", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("paid", pa.decimal128(10, 2)),
    ]
)


def fill(lab: Any, epochs: int) -> pa.Table:
    """A stream of some epochs, and what of it is not late."""
    chance = Random(5)
    watermark = START - timedelta(days=1)
    latest = START
    in_time = []
    for epoch in range(epochs):
        rows = []
        for number in range(60):
            at = START + timedelta(microseconds=int((epoch * 10 + chance.uniform(-9, 9)) * 1e6))
            rows.append(
                {
                    "sym": chance.choice(["a", "b", "c", None]),
                    "ts": at.replace(microsecond=0),
                    "id": epoch * 60 + number,
                    "price": chance.choice([None, chance.uniform(1, 9)]),
                    "paid": chance.randint(-999, 999),
                }
            )
        lab.stream("prices", pa.Table.from_pylist(rows, SCHEMA))
        in_time += [row for row in rows if row["ts"] >= watermark]
        latest = max([latest, *(row["ts"] for row in rows)])
        watermark = latest - LATENESS
    return pa.Table.from_pylist(in_time, SCHEMA)


def assert_answer(lab: Any, in_time: pa.Table) -> None:
    with duckdb.connect() as database:
        database.register("prices", in_time)
        wanted = {row["id"]: row for row in database.sql(VIEW).to_arrow_table().to_pylist()}
    found = DeltaTable(str(lab.out)).to_pyarrow_table().to_pylist()
    assert sorted(row["id"] for row in found) == sorted(wanted)
    for row in found:
        for name, value in row.items():
            theirs = wanted[row["id"]][name]
            close = isinstance(value, float) and isinstance(theirs, float)
            assert isclose(value, theirs, rel_tol=1e-9) if close else value == theirs, (name, row, wanted)


def test_statistics_over_a_stream_and_a_restart_with_another_view(lab: Any) -> None:
    in_time = fill(lab, 2)
    source = {"prices": lab.source("prices").withWatermark("ts", "4 seconds")}
    summary = lab.run(VIEW, sources=source, processors=2, groups=8)
    assert summary["late_rows"] == 120 - in_time.num_rows > 0
    assert summary["pending_rows"] == 0
    assert_answer(lab, in_time)
    with pytest.raises(CheckpointError, match="another query"):
        lab.run(VIEW.replace("3 PRECEDING", "4 PRECEDING"), sources=source, processors=2, groups=8)


def test_a_budget_and_fewer_processors_split_no_group(lab: Any) -> None:
    """What has no room on the processors that stay is suspended, takes turns, and is as exact as ever."""
    chance = np.random.default_rng(3)
    epochs, size = 8, 12_000
    for epoch in range(epochs):
        at = epoch * 10 + chance.uniform(-9, 9, size)
        rows = {
            "sym": pa.array([f"symbol {n:05d}" for n in chance.integers(0, 2_000, size)]),
            "ts": pa.array([START + timedelta(seconds=int(one)) for one in at], SCHEMA.field("ts").type),
            "id": pa.array(np.arange(size) + epoch * size),
            "price": pa.array(chance.uniform(1, 9, size)),
        }
        lab.stream("prices", pa.table(rows))
    view = f"""SELECT id, sym, count(*) OVER {LONG} AS n, max(id) OVER {LONG} AS high FROM prices"""
    suspended = []

    def listener(entry: dict[str, Any]) -> None:
        suspended.append(entry["suspended_groups"])
        if entry["batch_id"] == 4:
            query.resize(1)

    source = {"prices": lab.source("prices").withWatermark("ts", "20 seconds")}
    options: dict[str, Any] = {"sources": source, "processors": 2, "groups": 16, "memory_bytes": 4 << 20}
    started = threading.Event()
    query = lab.start(view, listener=lambda entry: (started.wait(), listener(entry)), **options)
    started.set()
    assert query.awaitTermination(120)
    assert set(query.placement) == {0}
    assert max(suspended) > 0
    assert query.summary()["pending_rows"] == 0
    assert query.summary()["results_cleanup"] == 0
    assert lab.results() == lab.duckdb(view)


def test_job_file(lab: Any, command: Callable[..., tuple[int, str, str]]) -> None:
    in_time = fill(lab, 2)
    job = lab.directory / "job.toml"
    job.write_text(f'''
[view]
sql = """{VIEW}"""
[sources.prices]
format = "parquet"
path = "data/prices"
schema = "sym string, ts timestamp, id long, price double, paid decimal(10,2)"
options = {{ maxFilesPerTrigger = "1" }}
event_time = "ts"
lateness = "4 seconds"
[run]
checkpoint = "state"
tier = "tier"
processors = 2
groups = 8
memory = "8MB"
[sink]
format = "delta"
path = "out"
''')
    code, output, _ = command("explain", job)
    assert code == 0
    assert "Grouped windowed aggregate" in output
    assert "avg(price) over 4 rows" in output
    code, _, error = command("run", job)
    assert code == 0, error
    assert_answer(lab, in_time)
