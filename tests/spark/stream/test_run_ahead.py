"""Spark's log of batches may be ahead of the manifest: for which streams, and how a restart takes it back."""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SpillwayError
from spillway.spark.sources.log_store import SPARK_DIRECTORY
from spillway.spark.stream.run_ahead import RunAhead, can_run_again, rewind
from spillway.spark.stream.stream_input import StreamInput
from spillway.state.storage.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from conftest import Lab

SQL = "SELECT a.id AS p, b.id AS q FROM a, b WHERE a.k = b.k"


def note(checkpoint: Path, log: str, batches: range) -> None:
    """What Spark writes of batches, with the checksums that some file systems keep beside."""
    directory = checkpoint / SPARK_DIRECTORY / log
    directory.mkdir(parents=True)
    for batch in batches:
        (directory / str(batch)).write_text("v1")
        (directory / f".{batch}.crc").write_text("")


def noted(checkpoint: Path, log: str) -> set[int]:
    names = [path.name for path in (checkpoint / SPARK_DIRECTORY / log).iterdir()]
    assert sorted(f".{name}.crc" for name in names if name.isdecimal()) == sorted(
        name for name in names if not name.isdecimal()
    )
    return {int(name) for name in names if name.isdecimal()}


class KilledError(Exception):
    """Before the next file was deleted."""


class Mortal(Storage):
    """Dies after so many deletions."""

    __slots__ = ("left",)

    def delete(self, paths: Any) -> None:
        for path in paths:
            if self.left == 0:
                raise KilledError
            self.left -= 1
            super().delete([path])


@given(
    taken=st.integers(-1, 12),
    forgotten=st.integers(0, 3),
    done_ahead=st.sampled_from([0, 1]),
    planned_ahead=st.sampled_from([0, 1]),
    deaths=st.lists(st.integers(0, 3), max_size=2),
)
def test_spark_goes_on_after_the_last_batch_that_was_taken_in(
    quick_directory: "Callable[[], Path]",
    taken: int,
    forgotten: int,
    done_ahead: int,
    planned_ahead: int,
    deaths: list[int],
) -> None:
    checkpoint = quick_directory()
    first, done = max(0, min(forgotten, taken - 1)), taken + done_ahead
    note(checkpoint, "commits", range(first, done + 1))
    note(checkpoint, "offsets", range(first, done + planned_ahead + 1))
    for left in deaths:
        storage = Mortal(str(checkpoint))
        storage.left = left
        with suppress(KilledError):
            rewind(storage, taken)
    rewind(Storage(str(checkpoint)), taken)
    assert noted(checkpoint, "commits") == set(range(first, taken + 1))
    # Spark runs the last batch that it has planned, if it is not done; it has to be the one after `taken`.
    planned = noted(checkpoint, "offsets")
    assert planned in (set(range(first, taken + 1)), set(range(first, taken + 2)))
    assert taken + 1 in planned or not done_ahead


def test_what_spillway_did_not_leave_behind_is_not_touched(tmp_path: Path) -> None:
    note(tmp_path, "commits", range(9))
    note(tmp_path, "offsets", range(10))
    rewind(Storage(str(tmp_path)), 3)
    assert noted(tmp_path, "commits") == set(range(9))
    assert noted(tmp_path, "offsets") == set(range(10))


def test_a_new_checkpoint_has_nothing_to_take_back(tmp_path: Path) -> None:
    rewind(Storage(str(tmp_path)), -1)
    assert list(tmp_path.iterdir()) == []


def test_batches_are_worked_at_one_by_one_in_order() -> None:
    done: list[str] = []

    def work(batch_id: int) -> None:
        done.append(f"begin {batch_id}")
        time.sleep(0.05)
        done.append(f"end {batch_id}")
        if batch_id == 3:
            raise SpillwayError("batch 3 is bad")

    ahead = RunAhead()
    ahead.begin(partial(work, 0))
    assert done == ["begin 0", "end 0"]  # the first is waited for
    for batch_id in (1, 2, 3):
        ahead.begin(partial(work, batch_id))
        assert f"end {batch_id}" not in done
    with pytest.raises(SpillwayError, match="batch 3"):
        ahead.begin(partial(work, 4))
    with pytest.raises(SpillwayError, match="batch 3"):
        ahead.close()
    assert done == [f"{what} {batch_id}" for batch_id in range(4) for what in ("begin", "end")]


def frames(spark: "SparkSession", path: str) -> "dict[str, tuple[DataFrame, bool]]":
    def files(**options: str) -> "DataFrame":
        return spark.readStream.schema("k long, id long").options(**options).json(path)

    rate = spark.readStream.format("rate").load()
    static = spark.range(3)
    stamped = rate.withWatermark("timestamp", "1 minute")
    return {
        "files": (files(), True),
        "files that stay": (files(CLEANSOURCE="OFF"), True),
        "files that go": (files(cleanSource="delete"), False),
        "files that are moved": (files(CleanSource="Archive", sourceArchiveDir=f"{path}-archive"), False),
        "rate": (rate, True),
        "rows alone": (files().where("k > 0").selectExpr("explode(array(k, id)) AS k"), True),
        "two sources": (files().union(rate.selectExpr("value AS k", "value AS id")), True),
        "one of two that goes": (files().union(files(cleanSource="delete")), False),
        "watermark": (stamped, True),
        "no duplicates": (stamped.dropDuplicatesWithinWatermark(["value"]), False),
        "joined with a table": (rate.join(static, rate.value == static.id), False),
        "aggregated": (stamped.groupBy("timestamp").count(), False),
        "of a socket": (
            spark.readStream.format("socket").options(host="localhost", port=1).load(),
            False,
        ),
    }


def test_only_what_can_be_read_again_is_planned_ahead(spark: "SparkSession", tmp_path: Path) -> None:
    expected = frames(spark, str(tmp_path))
    assert {name: can_run_again(frame) for name, (frame, _) in expected.items()} == {
        name: wanted for name, (_, wanted) in expected.items()
    }


def test_spark_must_not_forget_offsets_too_soon(spark: "SparkSession", tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    assert not can_run_again(session.readStream.schema("k long").json(str(tmp_path)))


def keyed(first: int, rows: int = 8) -> pa.Table:
    ids = range(first, first + rows)
    return pa.table({"k": pa.array([one % 5 for one in ids], pa.int64()), "id": pa.array(ids, pa.int64())})


def test_files_that_go_with_their_batch_are_all_counted(lab: "Lab") -> None:
    for name in "ab":
        lab.stream(name, *(keyed(8 * epoch) for epoch in range(4)))
    sources = {
        name: lab.spark.readStream.schema("k long, id long")
        .options(maxFilesPerTrigger="1", cleanSource="delete")
        .parquet(str(lab.directory / "data" / name))
        for name in "ab"
    }
    query = lab.start(SQL, sources=sources)
    assert isinstance(query._input, StreamInput)
    assert not query._input.runs_ahead
    assert query.awaitTermination(120)
    assert lab.results() == lab.duckdb(SQL)


def test_an_epoch_that_fails_after_spark_took_it_as_done_is_run_again(lab: "Lab") -> None:
    for name in "ab":
        lab.stream(name, *(keyed(8 * epoch) for epoch in range(5)))
    # The second life begins with the batch that failed, for which Spark waits. The last batch is doomed too.
    for batch, is_first in ((1, False), (1, True), (3, False)):
        query = lab.start(SQL, processors=2, sources=lab.streams())
        doom(query, lab.checkpoint, batch, is_first=is_first)
        with pytest.raises(SpillwayError, match=f"batch {batch} is doomed"):
            query.awaitTermination(120)
    summary = lab.run(SQL, processors=2, sources=lab.streams())
    assert summary["epochs"] == 4  # what was planned twice came as one batch
    assert lab.results() == lab.duckdb(SQL)


def doom(query: Any, checkpoint: Path, batch: int, *, is_first: bool) -> None:
    """Let an epoch fail; Spark must take its batch as done before, unless it is the first of this life."""
    run = query._engine.run_epoch
    noted_as_done = checkpoint / SPARK_DIRECTORY / "commits" / str(batch)

    def doomed(execute: Any, batch_id: int | None, **named: Any) -> Any:
        if batch_id != batch:
            return run(execute, batch_id, **named)
        deadline = time.monotonic() + (1 if is_first else 60)
        while not noted_as_done.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert noted_as_done.exists() != is_first
        raise SpillwayError(f"batch {batch} is doomed")

    query._engine.run_epoch = doomed
