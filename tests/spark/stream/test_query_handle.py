"""The handle of a running view: what it tells, how it stops, and that a restart goes on where it was."""

import json
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.manager.journal.file import read_journal
from spillway.model.codec import to_json

if TYPE_CHECKING:
    from conftest import Lab

SQL = "SELECT a.id AS p, b.id AS q, c.id AS r FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


def keyed(keys: list[int], first: int = 0) -> pa.Table:
    return pa.table(
        {"k": pa.array(keys, pa.int64()), "id": pa.array(range(first, first + len(keys)), pa.int64())}
    )


def fill(lab: "Lab", epochs: int, rows: int = 6, keys: int = 3) -> None:
    for name in "abc":
        lab.stream(name, *(keyed([n % keys for n in range(rows)], epoch * rows) for epoch in range(epochs)))


def test_it_looks_like_sparks_streaming_query(lab: "Lab") -> None:
    fill(lab, 3)
    heard: list[dict[str, Any]] = []
    query = lab.start(SQL, processors=2, listener=heard.append)
    assert query.status["isActive"]
    assert query.awaitTermination(120)
    assert not query.isActive
    assert query.exception() is None
    assert query.status == {
        "message": "Stopped",
        "isActive": False,
        "isDataAvailable": False,
        "isTriggerActive": False,
        "pendingRows": 0,
    }
    progress = query.recentProgress
    assert [one["epoch"] for one in progress] == [0, 1, 2]
    assert [one["batchId"] for one in progress] == [0, 1, 2]
    assert query.lastProgress == progress[-1]
    assert sum(one["numInputRows"] for one in progress) == 54
    assert sum(one["numOutputRows"] for one in progress) == sum(lab.results().values())
    assert {"order", "execute", "commit", "sink", "total"} == set(progress[0]["durationMs"])
    assert [one["processor"] for one in progress[0]["processors"]] == [0, 1]
    assert [entry["sequence"] for entry in heard] == [0, 1, 2]
    journal = lab.checkpoint / "journal.jsonl"
    assert [json.loads(line) for line in journal.read_text().splitlines()] == json.loads(json.dumps(heard))
    assert [to_json(entry) for entry in read_journal(journal)] == heard
    peaks = query.summary()["resident_bytes_peak"]
    assert len(peaks) == 2
    assert sum(peaks) > 0


def test_stop_finishes_the_epoch_and_a_restart_on_other_processors_goes_on(lab: "Lab") -> None:
    fill(lab, 5)
    first = lab.run_epochs(SQL, 2, processors=3, groups=16)
    assert 2 <= first["epochs"] < 5
    assert lab.results() != lab.duckdb(SQL)
    second = lab.run_epochs(SQL, 1, processors=1, groups=16)
    last = lab.run(SQL, processors=4, groups=16)
    assert first["query_id"] == second["query_id"] == last["query_id"]
    assert last["epochs"] == 5
    assert last["input_rows"] == 90
    assert lab.results() == lab.duckdb(SQL)


def test_a_summary_says_what_is_missing(lab: "Lab") -> None:
    fill(lab, 5)
    first = lab.run_epochs(SQL, 2, processors=1, groups=16)
    assert not first["complete"]
    assert first["missing"] == ["input that was not read"]
    split = lab.run_epochs(SQL, 1, processors=1, groups=16, epoch_rows=4)
    assert split["pending_rows"] > 0
    assert split["missing"][1] == f"results of {split['pending_rows']} rows that wait"
    last = lab.run(SQL, processors=1, groups=16)
    assert (last["complete"], last["missing"]) == (True, [])
    assert lab.results() == lab.duckdb(SQL)
    fill(lab, 1)
    for_ever = lab.run_epochs(SQL, 1, processors=1, groups=16, until="forever")
    assert (for_ever["complete"], for_ever["missing"]) == (True, [])
    assert lab.results() == lab.duckdb(SQL)


def test_nothing_new_means_no_epoch(lab: "Lab") -> None:
    fill(lab, 2)
    before = lab.run(SQL)
    again = lab.run(SQL)
    assert again["epochs"] == before["epochs"] == 2
    assert lab.results() == lab.duckdb(SQL)


def test_a_batch_that_comes_while_the_query_stops_is_not_lost(lab: "Lab") -> None:
    """Spark may begin a batch between the request to stop and its own end; it must not count it as done."""
    fill(lab, 4)
    query = lab.start(SQL, processors=1)
    while not query.recentProgress:
        time.sleep(0.005)
    query._stopping.set()  # as `stop` does, but Spark is left running: the widest possible gap
    assert query.awaitTermination(120)
    assert query.exception() is None
    lab.run(SQL, processors=2)
    assert lab.results() == lab.duckdb(SQL)


def test_stop_between_the_check_and_the_epoch_does_not_hang(lab: "Lab") -> None:
    """The drain decides to go on, then `stop` takes its turn first: the next epoch must give way."""
    fill(lab, 1, rows=40, keys=2)
    query = lab.start(SQL, processors=1, epoch_rows=5)
    while not query.recentProgress:
        time.sleep(0.005)
    stoppers = [threading.Thread(target=query.stop) for _ in range(3)]
    for thread in stoppers:
        thread.start()
    for thread in stoppers:
        thread.join(60)
    assert not any(thread.is_alive() for thread in stoppers)
    lab.run(SQL, processors=1)
    assert lab.results() == lab.duckdb(SQL)


def test_a_large_batch_is_split_and_stop_works_during_the_drain(lab: "Lab") -> None:
    fill(lab, 1, rows=60, keys=20)
    first = lab.run_epochs(SQL, 2, processors=1, epoch_rows=25, groups=8)
    assert first["input_rows"] == 180
    assert first["pending_rows"] > 0
    query = lab.start(SQL, processors=2, epoch_rows=25, groups=8)
    assert query.awaitTermination(120)
    assert all(one["batchId"] is None for one in query.recentProgress)
    assert all(row["probed_rows"] <= 25 for one in query.recentProgress for row in one["processors"])
    summary = query.summary()
    assert summary["pending_rows"] == 0
    assert summary["input_rows"] == 180
    assert lab.results() == lab.duckdb(SQL)


def test_one_hot_key_is_capped_per_epoch_and_goes_on_after_a_restart(lab: "Lab") -> None:
    fill(lab, 1, rows=20, keys=1)
    first = lab.run_epochs(SQL, 2, processors=2, epoch_results=900, groups=4)
    assert first["pending_rows"] > 0
    assert 0 < first["results_runtime"] < 8_000
    query = lab.start(SQL, processors=3, epoch_results=1_500, groups=4)
    assert query.awaitTermination(120)
    assert max(one["numOutputRows"] for one in query.recentProgress) <= 1_500
    assert query.summary()["results_runtime"] == 8_000
    assert lab.results() == Counter((p, q, r) for p in range(20) for q in range(20) for r in range(20))


def test_an_error_in_an_epoch_is_raised_to_the_waiter_and_repeats_nothing(lab: "Lab") -> None:
    fill(lab, 3)
    seen: list[int] = []

    def listener(entry: dict[str, Any]) -> None:
        seen.append(entry["sequence"])
        if len(seen) == 2:
            raise SpillwayError("the listener gave up; fix it")

    query = lab.start(SQL, listener=listener)
    with pytest.raises(SpillwayError, match="the listener gave up; fix it") as caught:
        query.awaitTermination(120)
    assert str(caught.value) == "the listener gave up; fix it"
    assert str(query.exception()) == "the listener gave up; fix it"
    assert lab.run(SQL)["epochs"] == 3
    assert lab.results() == lab.duckdb(SQL)


def test_forever_takes_what_arrives_until_it_is_stopped(lab: "Lab") -> None:
    fill(lab, 1)
    query = lab.start(SQL, until="forever", trigger="100 milliseconds")
    fill(lab, 1)
    deadline = time.monotonic() + 60
    while query.summary()["input_rows"] < 36 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert query.awaitTermination(0.01) is False
    query.stop()
    query.stop()
    assert query.exception() is None
    assert lab.results() == lab.duckdb(SQL)
