"""Whole queries with public names of PySpark only: slower, and the same answer."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.job.sources import SourceSpec
from spillway.spark.jvm.public_frame_jobs import PublicFrameJobs
from spillway.spark.session import session as session_module
from spillway.spark.session.session import Session
from spillway.spark.stream import file_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = "SELECT a.id AS x, b.id AS y, c.id AS z, b.s AS s FROM a, b, c WHERE a.k = b.k AND b.j = c.k"


@pytest.mark.parametrize("few_rows", [0, 40_000])
def test_a_tree_of_joins(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    chance = np.random.default_rng(7)
    tables = {}
    for name in "abc":
        columns = {"k": chance.integers(0, 40, 400), "j": chance.integers(0, 40, 400), "id": np.arange(400)}
        tables[name] = pa.table(columns | {"s": [f"s{number % 9}" for number in range(400)]})
        (tmp_path / name).mkdir()
        for part in range(2):
            pq.write_table(tables[name].slice(part * 200, 200), tmp_path / name / f"{part}.parquet")
    csv = tmp_path / "csv"
    csv.mkdir()
    duckdb.register("c", tables["c"])
    duckdb.execute(f"COPY c TO '{csv}/c.csv' (HEADER)")
    monkeypatch.setattr(session_module, "open_frame_jobs", PublicFrameJobs)
    monkeypatch.setattr(file_rows, "FEW_ROWS", few_rows)
    sources = {
        name: SourceSpec(name, "parquet", str(tmp_path / name), options={"maxFilesPerTrigger": "1"})
        for name in "ab"
    }
    schema = "k bigint, j bigint, id bigint, s string"
    sources["c"] = SourceSpec("c", "csv", str(csv), schema, {"header": "true"})  # Spark reads it
    query = Session(spark).run(
        SQL,
        sources,
        checkpoint=str(tmp_path / "state"),
        sink="parquet",
        path=str(tmp_path / "out"),
        processors=2,
    )
    query.awaitTermination()
    assert query.summary()["epochs"] == 2
    found = Counter(
        tuple(row.values())
        for path in (tmp_path / "out").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    )
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        assert found == Counter(database.execute(SQL).fetchall())
    assert found.total() > 1000
