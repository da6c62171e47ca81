"""Stored relations as Spark sees them: the types of a source are its own, whatever its values look like."""

import random
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spillway.compute import ComputeConfig
from spillway.errors import SinkError, SourceError
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.spark.compute.computation import plan_computation
from spillway.spark.compute.stored_source import open_stored_source
from spillway.spark.compute.view_writer import ViewWriter

AWKWARD = ("01", "2e1", "1", "1.0", "a=b/c", "x y%", "2020-01-01", "true", "NULL", "ü", None)


def counted(rows: list[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in rows)


@pytest.mark.parametrize("seed", range(4))
def test_a_delta_table_has_its_own_schema(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Random histories: partitions by text, numbers or dates; columns that later versions add."""
    chance = random.Random(seed)
    kinds = {"s": pa.string(), "n": pa.int64(), "d": pa.date32()}
    partitions = chance.sample(sorted(kinds), chance.randint(1, 2))
    more: dict[str, pa.DataType] = {}
    for number in range(3):
        count = chance.randint(1, 6)
        columns = {
            "v": pa.array([chance.choice((1, 2, None)) for _ in range(count)], pa.int32()),
            "s": pa.array([chance.choice(AWKWARD) for _ in range(count)], pa.string()),
            "n": pa.array([chance.choice((0, 1, -5, None)) for _ in range(count)], pa.int64()),
            "d": pa.array([chance.choice((date(2020, 1, 1), None)) for _ in range(count)], pa.date32()),
        }
        for name, kind in more.items():
            columns[name] = pa.array([chance.choice((7, None)) for _ in range(count)], pa.int8()).cast(kind)
        write_deltalake(
            tmp_path / "a table",
            pa.table(columns),
            partition_by=partitions,
            mode="append",
            schema_mode="merge" if number else None,
        )
        more[f"m{number}"] = chance.choice((pa.int64(), pa.string(), pa.decimal128(9, 2)))
    frame = open_stored_source(spark, SourceSpec("t", "delta", str(tmp_path / "a table")))
    table = DeltaTable(tmp_path / "a table")
    assert frame.columns == [field.name for field in table.schema().fields]
    types = dict(frame.dtypes)
    assert (types["s"], types["n"], types["d"], types["v"]) == ("string", "bigint", "date", "int")
    truth = table.to_pyarrow_table().select(frame.columns).to_pylist()
    assert counted(frame.collect()) == counted([tuple(row.values()) for row in truth])
    for way in ("auto", "tree"):
        sql = "SELECT a.s, b.m0, a.n FROM t a JOIN t b ON a.s = b.s"
        specs = {"t": SourceSpec("t", "delta", str(tmp_path / "a table"))}
        out = tmp_path / f"out-{way}"
        plan_computation(spark, sql, specs, ComputeConfig(way=way)).run(SinkSpec("parquet", str(out)))
        with duckdb.connect() as database:
            database.register("t", table.to_pyarrow_table())
            wanted = database.sql(sql).fetchall()
            found = database.sql(f"FROM '{out}/*.parquet'").fetchall()
        assert counted(found) == counted(wanted)


def test_an_empty_delta_table_has_its_own_schema(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a table", pa.table({"k": ["01"], "v": [1]}), partition_by=["k"])
    DeltaTable(tmp_path / "a table").delete()
    frame = open_stored_source(spark, SourceSpec("t", "delta", str(tmp_path / "a table")))
    assert frame.dtypes == [("k", "string"), ("v", "bigint")]
    assert frame.collect() == []


def sqlite_frame(spark: SparkSession, directory: Path, *statements: str) -> Any:
    with closing(sqlite3.connect(directory / "s.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return open_stored_source(spark, SourceSpec("t", "sqlite", str(directory / "s.db")))


@pytest.mark.parametrize("rows", ["", "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL)"])
def test_sqlite_tables_without_values_have_their_declared_types(
    spark: SparkSession, tmp_path: Path, rows: str
) -> None:
    create = "CREATE TABLE t (k INTEGER, s VARCHAR(9), x REAL, b BLOB, n NUMERIC)"
    frame = sqlite_frame(spark, tmp_path, create, *([rows] if rows else []))
    assert [kind for _, kind in frame.dtypes] == ["bigint", "string", "double", "binary", "double"]
    assert frame.count() == (1 if rows else 0)


def test_sqlite_values_have_the_declared_type_or_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = sqlite_frame(
        spark,
        tmp_path,
        "CREATE TABLE t (k INTEGER, s TEXT, x REAL, n)",
        "INSERT INTO t VALUES (1, 2, 3, 4.5)",
    )
    assert [tuple(row) for row in frame.collect()] == [(1, "2", 3.0, 4.5)]
    for value in ("1.5", "'abc'"):
        (tmp_path / value).mkdir()
        with pytest.raises(
            SourceError, match="column k holds a value that is not of its declared type INTEGER"
        ):
            sqlite_frame(
                spark, tmp_path / value, "CREATE TABLE t (k INTEGER)", f"INSERT INTO t VALUES (1), ({value})"
            )


def test_unsigned_integers_of_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "u.db") as database:
        database.execute("CREATE TABLE t (a UTINYINT, b USMALLINT, c UINTEGER, d UBIGINT)")
        database.execute("INSERT INTO t VALUES (255, 65535, 4294967295, 18446744073709551615)")
        database.execute("CREATE TABLE i (x INTERVAL)")
    frame = open_stored_source(spark, SourceSpec("t", "duckdb", str(tmp_path / "u.db")))
    assert [tuple(row) for row in frame.collect()] == [
        (255, 65535, 4294967295, Decimal("18446744073709551615"))
    ]
    with pytest.raises(SourceError, match=r"table i of .* cannot be read"):
        open_stored_source(spark, SourceSpec("i", "duckdb", str(tmp_path / "u.db")))


JOINED = "SELECT a.id AS x, b.id AS y FROM a JOIN b ON a.k = b.k"


def parquet_files(directory: Path, *tables: pa.Table) -> None:
    directory.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, directory / f"{number:03}.parquet")


@pytest.mark.parametrize("way", ["auto", "tree", "spark"])
@pytest.mark.parametrize(
    ("later", "words"),
    [
        ({"kk": [1, 2], "id": [7, 8]}, "001.parquet has no column k, which the view reads; it has kk, id"),
        ({"k": [1, 2], "other": [7, 8]}, "001.parquet has no column id, which the view reads"),
        ({"k": ["1", "2"], "id": [7, 8]}, "k string, expected bigint"),
    ],
)
def test_a_file_that_lacks_a_column_is_refused(
    spark: SparkSession, tmp_path: Path, way: str, later: dict[str, list[Any]], words: str
) -> None:
    first = pa.table({"k": [1, 2], "id": [1, 2]})
    parquet_files(tmp_path / "a", first, pa.table(later))
    parquet_files(tmp_path / "b", first)
    specs = {name: SourceSpec(name, "parquet", str(tmp_path / name)) for name in "ab"}
    with pytest.raises(SourceError) as caught:
        plan_computation(spark, JOINED, specs, ComputeConfig(way=way))
    assert words in str(caught.value)
    assert "[sources.a]" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "lacks"),
    [("k bigint, id bigint", "k"), ("k bigint, id bigint not null", "id"), ("k bigint, id bigint", None)],
)
def test_a_given_schema_allows_nulls_that_are_no_keys(
    spark: SparkSession, tmp_path: Path, schema: str, lacks: str | None
) -> None:
    first = pa.table({"k": [1, 2], "id": [1, 2]})
    parquet_files(tmp_path / "a", first, first.drop_columns([lacks or "id"]))
    parquet_files(tmp_path / "b", first)
    specs = {
        "a": SourceSpec("a", "parquet", str(tmp_path / "a"), schema),
        "b": SourceSpec("b", "parquet", str(tmp_path / "b")),
    }
    if lacks is not None:
        with pytest.raises(SourceError, match=f"has no column {lacks}"):
            plan_computation(spark, JOINED, specs)
        return
    plan_computation(spark, JOINED, specs).run(SinkSpec("parquet", str(tmp_path / "out")))
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert counted(found) == Counter({(1, 1): 1, (2, 2): 1, (None, 1): 1, (None, 2): 1})


@pytest.mark.parametrize("place", ["file/out", "file/below/out"])
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_sink_that_cannot_be_written_is_refused_before_the_join(
    spark: SparkSession, tmp_path: Path, kind: str, place: str
) -> None:
    (tmp_path / "file").touch()
    frame = spark.range(3)
    computation = plan_computation(
        spark, "SELECT a.id AS x FROM a JOIN b ON a.id = b.id", {"a": frame, "b": frame}
    )
    before = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    with pytest.raises(SinkError, match="allow writing there, or give another path"):
        computation.run(SinkSpec(kind, str(tmp_path / place)))
    assert spark.sparkContext._jsc.sc().dagScheduler().nextJobId() == before
    ViewWriter.to(SinkSpec(kind, str(tmp_path / "new" / "out")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
