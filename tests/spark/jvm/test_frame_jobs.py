"""Jobs over frames: the fast way with inner names of PySpark, and the public one, give the same."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spillway.spark.jvm.frame_jobs import FrameJobs
from spillway.spark.jvm.inner_frame_jobs import InnerFrameJobs, open_frame_jobs
from spillway.spark.jvm.public_frame_jobs import PublicFrameJobs
from spillway.spark.jvm.sockets import ENABLED


@pytest.fixture(params=[InnerFrameJobs, PublicFrameJobs])
def jobs(request: pytest.FixtureRequest, spark: SparkSession) -> FrameJobs:
    return request.param(spark.sparkContext)


def twice_to_each(targets: int):
    def task(partition: int, frames: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
        size = sum(map(len, frames))
        for target in range(targets):
            for number in range(2):
                yield target, b"%d:%d:%d:%d" % (partition, target, number, size)

    return task


def together(partition: int, frames: Iterator[bytes]) -> Iterator[bytes]:
    yield b"%d|" % partition + b"|".join(frames)


def test_frames_of_the_driver_come_in_order(jobs: FrameJobs) -> None:
    frames = jobs.placed([[b"a", b""], [b"b" * 100_000], []], [None, None, None])
    assert jobs.collect(jobs.mapped(frames, together)) == [b"0|a|", b"1|" + b"b" * 100_000, b"2|"]


def test_scattered_frames_reach_their_partition(jobs: FrameJobs) -> None:
    source = jobs.placed([[b"xy"], [b"z"]], [None, None])
    other = jobs.placed([[b"xyz"]], [None])
    scattered = jobs.scattered([(source, twice_to_each(6)), (other, twice_to_each(6))], 6)
    jobs.begin(scattered)
    orders = jobs.placed([[b"first", *[b""] * 5] for _ in range(3)], [None] * 3)
    given = jobs.zipped(orders, jobs.slice(scattered, 3, 6))
    answers = jobs.collect(jobs.mapped(given, together))
    assert len(answers) == 3
    for processor, answer in enumerate(answers):
        partition, first, *rest = answer.split(b"|")
        assert (int(partition), first) == (processor, b"first")
        expected = Counter(
            b"%d:%d:%d:%d" % (source, processor + 3, number, size)
            for source, size in ((0, 2), (1, 1), (0, 3))
            for number in range(2)
        )
        assert Counter(frame for frame in rest if frame) == expected


def test_three_sides_are_zipped(jobs: FrameJobs) -> None:
    scattered = [jobs.scattered([(jobs.placed([[b"s"]], [None]), twice_to_each(2))], 2) for _ in range(2)]
    orders = jobs.placed([[b"o", b""], [b"o", b""]], [None, None])
    given = jobs.zipped(orders, *(jobs.slice(side, 0, 2) for side in scattered))
    first, second = jobs.collect(jobs.mapped(given, together))
    assert first == b"0|o|0:0:0:1|0:0:0:1||0:0:1:1|0:0:1:1"
    assert second == b"1|o|0:1:0:1|0:1:0:1||0:1:1:1|0:1:1:1"


def test_a_side_with_too_few_frames_is_an_error(jobs: FrameJobs) -> None:
    """A count that is wrong must fail, whatever is missing."""
    scattered = jobs.scattered([(jobs.placed([[b"s"]], [None]), twice_to_each(1))], 1)
    given = jobs.zipped(jobs.placed([[b"o", b"", b""]], [None]), jobs.slice(scattered, 0, 1))
    with pytest.raises(Exception, match=r"zip|number of"):
        jobs.collect(jobs.mapped(given, together))


def test_rows_of_a_frame_are_arrow_batches(jobs: FrameJobs, spark: SparkSession) -> None:
    rows = spark.range(0, 10, 1, 2).selectExpr("id", "cast(id as string) AS text")
    frames = jobs.arrow(rows)
    assert frames.partitions == 2
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    batches = [pa.ipc.read_record_batch(pa.py_buffer(data), schema) for data in jobs.collect(frames)]
    found = pa.Table.from_batches(batches).to_pylist()
    assert sorted(row["id"] for row in found) == list(range(10))
    assert all(row["text"] == str(row["id"]) for row in found)


def test_a_spark_that_lacks_a_name_takes_the_public_way(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(open_frame_jobs(spark.sparkContext), InnerFrameJobs)
    jvm = spark.sparkContext._jvm

    class Without:
        """A view of the JVM in which one class is a package, as Py4J shows what does not exist."""

        def __getattr__(self, name: str) -> object:
            return jvm.org if name == "PairwiseRDD" else getattr(jvm, name)

    monkeypatch.setattr(spark.sparkContext, "_jvm", Without(), raising=False)
    assert isinstance(open_frame_jobs(spark.sparkContext), PublicFrameJobs)
    assert "this Spark lacks" in caplog.text


def test_sockets_hold_under_load(spark: SparkSession) -> None:
    """More busy processes than cores, and many small jobs with new Python workers among them."""
    assert spark.conf.get(ENABLED) == "true"
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        jobs = InnerFrameJobs(spark.sparkContext)
        for size in range(1, 20):
            source = jobs.placed([[b"x" * size * 1000] for _ in range(4)], [None] * 4)
            scattered = jobs.scattered([(source, twice_to_each(4))], 4)
            orders = jobs.placed([[b"o", *[b""] * 7] for _ in range(4)], [None] * 4)
            given = jobs.zipped(orders, jobs.slice(scattered, 0, 4))
            answers = jobs.collect(jobs.mapped(given, together))
            assert [answer.count(b":%d" % (size * 1000)) for answer in answers] == [8] * 4
    finally:
        for process in busy:
            process.kill()
            process.wait()
