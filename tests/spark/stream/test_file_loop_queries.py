"""Queries over files by the file loop, against Structured Streaming: results, batches, restarts, refusals."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.errors import CheckpointError, SourceError
from spillway.job.sources import SourceSpec
from spillway.manager.files.log import DIRECTORY, FileLog
from spillway.manager.files.options import read_options
from spillway.manager.files.planner import FilePlanner, ListedInput
from spillway.manager.files.tree import LocalTree
from spillway.spark.sources.log_store import SPARK_DIRECTORY
from spillway.spark.stream.file_loop import FileLoop
from spillway.spark.stream.stream_input import StreamInput
from spillway.state.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from conftest import Lab

SQL = "SELECT a.id AS p, b.id AS q FROM a, b WHERE a.k = b.k"
WAIT_SECONDS = 60


def keyed(first: int, rows: int = 8) -> pa.Table:
    ids = range(first, first + rows)
    return pa.table({"k": pa.array([n % 5 for n in ids], pa.int64()), "id": pa.array(ids, pa.int64())})


def fill(lab: "Lab", files: int) -> None:
    for name in "ab":
        known = len(lab.tables.get(name, ()))
        lab.stream(name, *(keyed(8 * (known + number)) for number in range(files)))


def wait_for_epochs(query: Any, epochs: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while len(query.recentProgress) < epochs:
        assert time.monotonic() < deadline and query.isActive, query.exception()
        time.sleep(0.005)


# What is listed, against Spark's own source


def tree_of_files(chance: random.Random, root: Path) -> None:
    """Random names at random depths; each file holds its own path, and is a second older or younger."""
    columns = chance.choice([(), (), ("k",), ("k", "_j")])
    times = list(range(40))
    chance.shuffle(times)
    for number in range(chance.randint(1, 12)):
        names = [f"{column}={chance.choice(['1', '2', 'x y', 'a%3Ab'])}" for column in columns]
        if chance.random() < 0.2:
            names.insert(len(names), chance.choice(["sub", "_hidden", ".dot"]))
        name = chance.choice(["f{}.txt", "g{}.dat", "_h{}", ".i{}", "j {}.txt", "k{}._COPYING_"])
        path = root.joinpath(*names, name.format(number))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.relative_to(root)}\n")
        os.utime(path, (1_700_000_000 + times[number], 1_700_000_000 + times[number]))


def listing_options(chance: random.Random) -> dict[str, str]:
    options: dict[str, str] = {}
    if chance.random() < 0.5:
        options["maxFilesPerTrigger"] = str(chance.randint(1, 4))
    elif chance.random() < 0.5:
        options["maxBytesPerTrigger"] = str(chance.randint(1, 40))
    if chance.random() < 0.3:
        options["latestFirst"] = "true"
    if chance.random() < 0.3:
        options["pathGlobFilter"] = chance.choice(["*.txt", "[fg]*", "{f,j}*", "?1*"])
    if chance.random() < 0.3:
        options["recursiveFileLookup"] = "true"
    if chance.random() < 0.3:
        options["maxFileAge"] = chance.choice(["3s", "10s", "1h"])
    return options


def batches_of_spark(
    spark: "SparkSession", path: str, options: dict[str, str], state: Path
) -> list[Counter[str]]:
    found: list[Counter[str]] = []

    def note(frame: "DataFrame", _: int) -> None:
        found.append(Counter(row["value"] for row in frame.select("value").collect()))

    stream = spark.readStream.format("text").schema("value string").options(**options).load(path)
    query = (
        stream.writeStream.foreachBatch(note)
        .option("checkpointLocation", str(state))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found


def batches_of_planner(root: Path, path: str, options: dict[str, str], state: Path) -> list[Counter[str]]:
    read = read_options({"path": path, **{key.lower(): value for key, value in options.items()}})
    assert read is not None
    log = FileLog(Storage(str(state)), 1, ["a"])
    planner = FilePlanner([ListedInput("a", "text", read, LocalTree())], log, log.load(-1, 0), -1, None)
    planner.refresh()
    found = []
    while (batch := planner.plan(len(found) - 1, live=False)) is not None:
        found.append(Counter(str(Path(entry.path).relative_to(root)) for entry in batch.files[0]))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_batches_are_those_of_sparks_source(spark: "SparkSession", tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "data"
    root.mkdir()
    tree_of_files(chance, root)
    options, path = listing_options(chance), str(root)
    if seed % 4 == 3:
        path = f"{root}/{chance.choice(['*', 'k=*', '[fk]*', '{k=1,f*}'])}"
    ours = batches_of_planner(root, path, options, tmp_path / "ours")
    assert batches_of_spark(spark, path, options, tmp_path / "theirs") == ours


# Results


def write_partitioned(chance: random.Random, root: Path, kind: str) -> None:
    for number in range(chance.randint(2, 6)):
        directory = root / f"day={chance.choice(['2024-01-01', '2024-02-02'])}" / f"n={chance.randint(7, 12)}"
        directory.mkdir(parents=True, exist_ok=True)
        table = keyed(100 * number, chance.randint(0, 12))
        path = directory / f"{number}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


PARTITIONED = (
    "SELECT a.id AS p, a.day AS day, b.id AS q, b.n AS n FROM a, b "
    "WHERE a.k = b.k AND a.n = b.n AND a.day >= DATE '2024-01-15'"
)


@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_structured_streaming(lab: "Lab", seed: int, counted: Any) -> None:
    chance = random.Random(seed)
    kinds = {name: chance.choice(["parquet", "json"]) for name in "ab"}
    for name, kind in kinds.items():
        write_partitioned(chance, lab.directory / "data" / name, kind)
    found = {}
    for way, more in (("loop", {}), ("stream", {"maxCachedFiles": "10000"})):
        sources = {
            name: SourceSpec(
                name,
                kind,
                str(lab.directory / "data" / name),
                schema="k long, id long",
                options={"maxFilesPerTrigger": str(chance.randint(1, 3)), **more},
            )
            for name, kind in kinds.items()
        }
        place = {"checkpoint": str(lab.directory / way), "path": str(lab.directory / f"{way}-out")}
        query = lab.start(PARTITIONED, sources=sources, sink="parquet", **place)
        assert isinstance(query._input, FileLoop if way == "loop" else StreamInput)
        assert query.awaitTermination(WAIT_SECONDS)
        found[way] = counted(pq.read_table(place["path"]))
    assert found["loop"] == found["stream"]


def test_a_frame_with_operators_over_its_files(lab: "Lab") -> None:
    fill(lab, 3)
    sources = {
        "a": lab.source("a").where("id % 2 = 0").selectExpr("k AS k", "id + 1000 AS id"),
        "b": lab.source("b").selectExpr("k", "explode(array(id, -id)) AS id"),
    }
    query = lab.start(SQL, sources=sources)
    assert isinstance(query._input, FileLoop)
    assert query.awaitTermination(WAIT_SECONDS)
    assert lab.results() == lab.duckdb(
        "SELECT a.id + 1000 AS p, b.id AS q FROM a, (SELECT k, unnest([id, -id]) AS id FROM b) b "
        "WHERE a.k = b.k AND a.id % 2 = 0"
    )


def test_names_that_look_like_patterns(lab: "Lab") -> None:
    """Spark's own stream reads the other files of their batch twice."""
    lab.stream("b", keyed(0))
    for number, name in enumerate(["l[1].parquet", "m{2}", "n*", "o?", "p q", "r%20", "s\\t"]):
        lab.stream("a", keyed(8 * number))
        path = lab.directory / "data" / "a"
        (path / f"{number:04d}.parquet").rename(path / name)
    query = lab.start(SQL, sources={"a": lab.source("a", maxFilesPerTrigger="4"), "b": lab.source("b")})
    assert query.awaitTermination(WAIT_SECONDS)
    assert lab.results() == lab.duckdb(SQL)


def test_one_source_twice(lab: "Lab") -> None:
    lab.stream("a", keyed(0), keyed(8))
    view = "SELECT x.id AS p, y.id AS q FROM a x, a y WHERE x.k = y.k"
    query = lab.start(view)
    assert isinstance(query._input, FileLoop)
    assert query.awaitTermination(WAIT_SECONDS)
    assert lab.results() == lab.duckdb(view)


def kinds_of_frames(lab: "Lab") -> Iterator[tuple[str, Any, type]]:
    yield "files", lab.source("a"), FileLoop
    yield "an option of Spark's streaming", lab.source("a", maxCachedFiles="1"), StreamInput
    yield "files that go", lab.source("a", cleanSource="off"), StreamInput
    yield "two streams", lab.source("a").union(lab.source("a")), StreamInput
    yield "metadata", lab.source("a").selectExpr("k", "id", "_metadata.file_path AS f"), StreamInput
    rate = lab.spark.readStream.format("rate").load().selectExpr("value AS k", "value AS id")
    yield "rate", rate, StreamInput


def test_what_the_loop_reads(lab: "Lab") -> None:
    fill(lab, 1)
    for name, frame, kind in kinds_of_frames(lab):
        state = {"checkpoint": str(lab.directory / name), "sink": "count", "until": "forever"}
        query = lab.start(SQL, sources={"a": frame, "b": lab.source("b")}, **state)
        assert isinstance(query._input, kind), name
        query.stop()


# Restarts


def test_a_restart_in_the_middle_of_a_backlog(lab: "Lab") -> None:
    fill(lab, 6)
    lab.run_epochs(SQL, 2)
    fill(lab, 1)
    lab.run_epochs(SQL, 1)
    assert lab.run(SQL)["epochs"] == 7
    assert lab.results() == lab.duckdb(SQL)
    assert lab.run(SQL)["run_epochs"] == 0


def test_files_are_planned_again_after_a_failure(lab: "Lab") -> None:
    """The plan of the batch that failed, and of the one ahead, is dropped."""
    fill(lab, 4)
    query = lab.start(SQL)
    run = query._engine.run_epoch

    def doomed(execute: Any, batch_id: int | None, **named: Any) -> Any:
        if batch_id == 1:
            raise SourceError("batch 1 is doomed")
        return run(execute, batch_id, **named)

    query._engine.run_epoch = doomed  # type: ignore[method-assign]
    with pytest.raises(SourceError, match="doomed"):
        query.awaitTermination(WAIT_SECONDS)
    lab.run(SQL)
    assert lab.results() == lab.duckdb(SQL)


def test_a_file_that_was_read_and_is_replaced_is_refused(lab: "Lab") -> None:
    fill(lab, 2)
    lab.run(SQL)
    victim = lab.directory / "data" / "a" / "0000.parquet"
    pq.write_table(keyed(500, 3), victim)
    with pytest.raises(SourceError, match=r"\[sources\.a\] file .*0000\.parquet was read with"):
        lab.run(SQL)
    assert lab.results() == lab.duckdb(SQL)


@pytest.mark.parametrize("change", ["gone", "replaced"])
def test_a_file_that_changes_before_it_is_read_is_refused(lab: "Lab", change: str) -> None:
    fill(lab, 3)
    query = lab.start(SQL)
    victim = lab.directory / "data" / "b" / "0001.parquet"
    run = query._engine.run_epoch

    def run_epoch(execute: Any, batch_id: int | None, **named: Any) -> Any:
        if batch_id == 0:
            victim.unlink()
            if change == "replaced":
                pq.write_table(keyed(500, 3), victim)
        return run(execute, batch_id, **named)

    query._engine.run_epoch = run_epoch  # type: ignore[method-assign]
    with pytest.raises(SourceError, match=r"0001\.parquet (is gone|has changed)"):
        query.awaitTermination(WAIT_SECONDS)
    assert query.summary()["epochs"] == 1


def test_a_checkpoint_goes_on_with_its_kind_of_log(lab: "Lab") -> None:
    fill(lab, 2)
    lab.run(SQL, sources=lab.streams())
    fill(lab, 1)
    query = lab.start(SQL)
    assert isinstance(query._input, StreamInput)
    assert query.awaitTermination(WAIT_SECONDS)
    assert lab.results() == lab.duckdb(SQL)


def test_a_file_log_cannot_go_on_under_structured_streaming(lab: "Lab") -> None:
    fill(lab, 2)
    lab.run(SQL)
    assert not (lab.checkpoint / SPARK_DIRECTORY).exists()
    with pytest.raises(CheckpointError, match="has a file log, but now an input needs Spark's own streaming"):
        lab.run(SQL, sources=lab.streams())


def test_a_file_log_that_lacks_a_committed_batch_is_refused(lab: "Lab") -> None:
    fill(lab, 3)
    lab.run(SQL)
    (record,) = (lab.checkpoint / DIRECTORY).glob("000000000001.*")
    record.unlink()
    with pytest.raises(CheckpointError, match="lacks batch 1, which the manifest has"):
        lab.run(SQL)


# The handle, and live queries


def test_the_handle_has_every_member_of_sparks(lab: "Lab", capsys: pytest.CaptureFixture[str]) -> None:
    from pyspark.sql.streaming.query import StreamingQuery

    fill(lab, 1)
    query = lab.start(SQL)
    members = {name for name in vars(StreamingQuery) if not name.startswith("_")}
    assert {name for name in members if not hasattr(query, name)} == set()
    query.processAllAvailable()
    assert query.awaitTermination(WAIT_SECONDS)
    query.explain()
    assert "FileScan parquet" in capsys.readouterr().out
    assert len(query.runId) == 36


@pytest.mark.parametrize("settings", [{}, {"trigger": "200 milliseconds"}, {"latency": "100ms"}])
def test_a_live_query_reads_what_comes(lab: "Lab", settings: dict[str, str]) -> None:
    fill(lab, 1)
    query = lab.start(SQL, until="forever", **settings)
    assert isinstance(query._input, FileLoop)
    wait_for_epochs(query, 1)
    fill(lab, 2)
    query.processAllAvailable()
    assert lab.results() == lab.duckdb(SQL)
    assert query.status["message"] in ("Waiting for data to arrive", "Running")
    query.stop()
    assert query.exception() is None
    assert lab.run(SQL, until="exhausted")["run_epochs"] == 0


def test_files_that_come_meanwhile_wait_for_the_next_run(lab: "Lab") -> None:
    fill(lab, 2)
    query = lab.start(SQL, listener=lambda _: fill(lab, 1) if len(lab.tables["a"]) < 3 else None)
    assert query.awaitTermination(WAIT_SECONDS)
    assert query.summary()["epochs"] == 2
    assert lab.run(SQL)["run_epochs"] == 1
    assert lab.results() == lab.duckdb(SQL)


def test_without_limits_epochs_grow(lab: "Lab") -> None:
    """The first epoch is small; explicit limits are not needed to get results early."""
    for name in "ab":
        lab.stream(name, *(keyed(20_000 * number, 20_000) for number in range(12)))
    sources = {name: SourceSpec(name, "parquet", str(lab.directory / "data" / name)) for name in lab.tables}
    view = "SELECT a.id AS p, b.id AS q FROM a, b WHERE a.id = b.id"
    query = lab.start(view, sources=sources, sink="count")
    assert query.awaitTermination(WAIT_SECONDS)
    rows = [progress["numInputRows"] for progress in query.recentProgress]
    assert rows[0] < 100_000
    assert sum(rows) == 480_000
    assert max(rows) > rows[0]
