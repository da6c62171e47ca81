"""Groups move and processors come and go while a view runs on Spark: the same answer, and no restart."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.file import read_journal

if TYPE_CHECKING:
    from conftest import Lab
    from spillway.spark.stream.query import Query

SQL = "SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
WAIT_SECONDS = 120.0


def feed(lab: "Lab", files: int, rows: int = 400, keys: int = 1_500) -> None:
    """More files for each stream, with keys in random order and some skew."""
    for name in "abc":
        chance = np.random.default_rng([len(lab.tables.get(name, [])), ord(name)])
        for _ in range(files):
            drawn = np.minimum(chance.integers(0, keys, rows), chance.integers(0, keys, rows))
            first = sum(table.num_rows for table in lab.tables.get(name, []))
            lab.stream(name, pa.table({"k": drawn, "id": np.arange(first, first + rows)}))


def entries(lab: "Lab") -> list[EpochEntry]:
    path = lab.checkpoint / "journal.jsonl"
    return list(read_journal(path)) if path.exists() else []


def wait_until(query: "Query", holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def finish(lab: "Lab", query: "Query", **options: Any) -> dict[str, Any]:
    """Wait for all that was fed, stop, and run to the end."""
    files = len(lab.tables["a"])
    wait_until(query, lambda: query._engine.manifest.batch_id >= files - 1)
    query.stop()
    assert query.exception() is None
    return lab.run(SQL, **options)


def test_the_number_of_processors_changes_while_the_query_runs(lab: "Lab") -> None:
    feed(lab, 3)
    query = lab.start(SQL, processors=2, groups=24, until="forever")
    wait_until(query, lambda: len(entries(lab)) >= 2)
    for size in (4, 3):
        query.resize(size)
        feed(lab, 8)
        wait_until(query, lambda size=size: set(query.placement) == set(range(size)))  # type: ignore[misc]
    finish(lab, query, processors=3, groups=24)
    assert lab.results() == lab.duckdb(SQL)
    sizes = [len(entry.processors) for entry in entries(lab)]
    assert sizes[0] == 2
    assert sorted(set(sizes)) == [2, 3, 4]
    assert {entry.token for entry in entries(lab)[:-1]} <= {1, 2}
    counts = [list(query.placement).count(processor) for processor in range(3)]
    assert max(counts) - min(counts) <= 6


def test_a_skewed_start_is_balanced_and_users_can_move_groups(lab: "Lab") -> None:
    feed(lab, 4)
    policy = {"minimum_span_seconds": 0.0, "minimum_difference_bytes": 0, "relocation_threshold": 0.9}
    options: dict[str, Any] = {
        "processors": 3,
        "groups": 24,
        "distribution": (4.0, 1.0, 1.0),
        "adapt": "lazy-disk",
        "policy": policy,
        "buffer_bytes": 1 << 20,
    }
    query = lab.start(SQL, until="forever", **options)
    assert query.move([0, 1], 2) == []
    feed(lab, 6)
    wait_until(query, lambda: query.placement[0] == query.placement[1] == 2)
    query.rebalance()
    feed(lab, 3)
    with pytest.raises(SpillwayError, match="no groups"):
        query.move([24], 0)
    assert query.move([5], 7) == ["there is no processor 7"] or query._engine.controller.relocation.moves
    summary = finish(lab, query, **options)
    assert lab.results() == lab.duckdb(SQL)
    assert summary["relocations"] >= 2
    counts = [list(query.placement).count(processor) for processor in range(3)]
    assert max(counts) < 16


def test_unequal_memory_and_speed(lab: "Lab") -> None:
    feed(lab, 4)
    lab.run(SQL, processors=2, groups=8, memory_each=(8 << 20, 4 << 20), row_seconds=1e-4, speeds=(1.0, 0.5))
    assert lab.results() == lab.duckdb(SQL)
    parts = [one for entry in entries(lab) for one in entry.processors]
    for one in parts:
        per_row = (1e-4, 2e-4)[one.processor]
        assert one.busy_seconds >= round(per_row * one.probed_rows, 4)
    assert {one.processor for one in parts if one.probed_rows} == {0, 1}
    with pytest.raises(SpillwayError, match="one for each"):
        lab.start(SQL, processors=2, memory_each=(8 << 20,))
