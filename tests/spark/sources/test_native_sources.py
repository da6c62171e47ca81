"""Delta tables and Arrow files, which only tasks of Spillway read: exact over versions and restarts."""

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spillway.errors import CheckpointError, SourceError, SpillwayError
from spillway.job.sources import SourceSpec
from spillway.manager.files.delta_files import DeltaFiles
from spillway.spark.session.session import Session
from spillway.state.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = "SELECT a.id AS x, a.p AS p, b.id AS y, b.s AS s FROM a JOIN b ON a.k = b.k WHERE b.v > 10"
ROWS = 300


def left(seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    days = [None if n % 7 == 0 else f"d {n % 3}" for n in range(ROWS)]
    return pa.table({"k": chance.integers(0, 50, ROWS), "id": np.arange(ROWS) + seed * ROWS, "p": days})


def right(seed: int) -> pa.Table:
    chance = np.random.default_rng(1000 + seed)
    return pa.table(
        {
            "k": chance.integers(0, 50, ROWS),
            "id": np.arange(ROWS) + seed * ROWS,
            "v": pa.array(chance.integers(0, 20, ROWS).astype(np.int32), mask=chance.random(ROWS) < 0.1),
            "s": [f"s{n % 11}" for n in range(ROWS)],
        }
    )


def write_arrow(directory: Path, name: str, table: pa.Table) -> None:
    directory.mkdir(exist_ok=True)
    with pa.ipc.new_file(str(directory / f".{name}"), table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    (directory / f".{name}").rename(directory / name)


class Job:
    def __init__(self, spark: "SparkSession", root: Path) -> None:
        self.spark, self.root = spark, root

    def run(self, sql: str = SQL, **options: Any) -> dict[str, Any]:
        sources = {
            "a": SourceSpec("a", "delta", str(self.root / "a"), options={"maxFilesPerTrigger": "2"}),
            "b": SourceSpec("b", "arrow", str(self.root / "b")),
        }
        query = Session(self.spark).run(
            sql,
            sources | options,
            checkpoint=str(self.root / "state"),
            sink="parquet",
            path=str(self.root / "out"),
            processors=2,
        )
        query.awaitTermination()
        return query.summary()

    def results(self) -> Counter[Any]:
        files = [str(path) for path in (self.root / "out").glob("*.parquet")]
        return Counter(tuple(row.values()) for path in files for row in pq.read_table(path).to_pylist())

    def expected(self, a: pa.Table, b: pa.Table) -> Counter[Any]:
        with duckdb.connect() as database:
            database.register("a", a)
            database.register("b", b)
            return Counter(database.execute(SQL).fetchall())


@pytest.fixture
def job(spark: "SparkSession", tmp_path: Path) -> Job:
    write_deltalake(str(tmp_path / "a"), left(0), partition_by=["p"])
    write_arrow(tmp_path / "b", "0.arrow", right(0))
    return Job(spark, tmp_path)


def test_new_versions_are_read_once_whatever_moves_their_rows(job: Job) -> None:
    assert job.run()["complete"]
    assert job.results() == job.expected(left(0), right(0))
    table = str(job.root / "a")
    write_deltalake(table, left(1), mode="append")
    DeltaTable(table).optimize.compact()
    write_arrow(job.root / "b", "1.arrow", right(1))
    job.run()
    everything = job.expected(pa.concat_tables([left(0), left(1)]), pa.concat_tables([right(0), right(1)]))
    assert job.results() == everything
    assert job.run()["run_input_rows"] == 0
    assert job.results() == everything


def test_a_table_without_partitions_that_is_created_again_under_a_live_query(job: Job) -> None:
    plain = job.root / "plain"
    write_deltalake(str(plain), left(0))
    write_deltalake(str(plain), left(1), mode="append")
    files = DeltaFiles("a", str(plain), Storage(str(job.root / "record")))
    first = files.files()
    assert [entry.modified_ms for entry in first] == [1, 1] and files.files() is first
    again = DeltaFiles("a", str(plain), Storage(str(job.root / "record")))
    write_deltalake(str(plain), left(2), mode="append")
    assert len(again.files()) == len(files.files()) == 3
    shutil.rmtree(plain)
    write_deltalake(str(plain), left(3))
    for listing in (files, again):
        with pytest.raises(CheckpointError, match=r"was created again since checkpoint"):
            listing.files()


def test_a_version_that_removes_rows_is_refused_by_name(job: Job) -> None:
    job.run()
    before = job.results()
    DeltaTable(str(job.root / "a")).delete("id < 10")
    with pytest.raises(SourceError, match=r"Delta table .* has removed rows .* in version 1"):
        job.run()
    assert job.results() == before


def test_a_table_that_was_created_again_is_refused(job: Job) -> None:
    job.run()
    shutil.rmtree(job.root / "a")
    write_deltalake(str(job.root / "a"), left(5), partition_by=["p"])
    with pytest.raises(CheckpointError, match=r"was created again since checkpoint"):
        job.run()


def test_what_only_spark_could_read_is_refused_before_anything_is_written(job: Job) -> None:
    with pytest.raises(SourceError, match=r"sources\.b\] has format arrow, .* only Spark evaluates upper"):
        job.run("SELECT a.id AS x, upper(b.s) AS s FROM a JOIN b ON a.k = b.k")
    assert not (job.root / "state").exists()
    rates = job.spark.readStream.format("rate").load().selectExpr("value AS k", "value AS id", "'d' AS p")
    with pytest.raises(SourceError, match=r"sources\.b\] has format arrow, which needs a view over files"):
        job.run(a=rates)


def test_an_arrow_file_that_lacks_a_column_is_named(job: Job) -> None:
    write_arrow(job.root / "b", "1.arrow", right(1).drop_columns(["k"]))
    with pytest.raises(SpillwayError, match=r"1\.arrow has no column k, which the view reads"):
        job.run()
