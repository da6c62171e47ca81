"""Columns that are read without Spark are those that Spark finds; what one refuses, the other does too."""

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from spillway.catalog import stream_columns
from spillway.errors import SpillwayError
from spillway.job import SourceSpec
from spillway.plan.typing import NeedsSparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = itertools.count()
PLAIN = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
    pa.uint64(),
    pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.date32(),
    pa.date64(),
    pa.decimal128(5, 2), pa.decimal128(18, 0), pa.decimal128(38, 38), pa.timestamp("us"), pa.timestamp("us",
    "UTC"),
    pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("ms"), pa.timestamp("s"),
    pa.dictionary(pa.int32(), pa.string()),
]  # fmt: skip
UNUSUAL = [
    pa.timestamp("ns"), pa.time32("ms"), pa.time64("us"), pa.duration("us"), pa.float16(), pa.binary(4),
    pa.null(),
    pa.list_(pa.int32()), pa.struct([("x", pa.int32())]), pa.map_(pa.string(), pa.int64()),
    pa.decimal256(50, 2),
]  # fmt: skip
NAMES = ["k", "id", "Mixed", "with space", "a.b", "ä", "ts", "K"]
DDL_TYPES = [
    "long", "INT", "string", "decimal(12,4)", "timestamp", "timestamp_ntz", "date", "boolean", "binary",
    "double",
    "array<int>", "struct<x: int, y: string>", "map<string, double>", "varchar(5)", "variant", "void",
    "time(6)",
    "interval day to second", "nonsense", "long long", "string collate UTF8_LCASE", "decimal(50,2)",
]  # fmt: skip
SPARK_TYPES = [
    "bigint", "int", "string", "decimal(12,4)", "timestamp", "timestamp_ntz", "date", "boolean", "binary",
    "array<int>",
    "struct<x:int,y:struct<z:string>>", "map<string,double>", "tinyint", "float",
]  # fmt: skip


def found(read: Any) -> Any:
    """What `read` returns, or how it refuses."""
    try:
        return read()
    except SpillwayError as error:
        return type(error).__name__, str(error)


def check(spark: "SparkSession", spec: SourceSpec) -> bool:
    from spillway.spark.sources import columns_of, open_source

    try:
        ours = found(lambda: stream_columns(spec))
    except NeedsSparkError as reason:
        assert "\n" not in str(reason)
        return False
    assert ours == found(lambda: columns_of(open_source(spark, spec)))
    return True


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


def fresh(root: Path) -> Path:
    directory = root / str(next(NUMBERS))
    directory.mkdir()
    return directory


def schemas(types: list[Any]) -> st.SearchStrategy[list[tuple[str, Any]]]:
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True)
    return names.flatmap(
        lambda chosen: st.tuples(*(st.tuples(st.just(n), st.sampled_from(types)) for n in chosen))
    )


@pytest.mark.parametrize("kind", PLAIN, ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"store_schema": False}, {"version": "1.0"}], ids=["", "bare", "old"]
)
def test_every_parquet_type(
    spark: "SparkSession", root: Path, kind: pa.DataType, options: dict[str, Any]
) -> None:
    directory = fresh(root)
    pq.write_table(pa.table({"c": pa.array([], kind)}), directory / "a.parquet", **options)
    assert check(spark, SourceSpec("s", "parquet", str(directory)))


@pytest.mark.parametrize("kind", SPARK_TYPES)
def test_every_type_that_spark_writes(spark: "SparkSession", root: Path, kind: str) -> None:
    directory = fresh(root)
    spark.createDataFrame([], f"c {kind}, k int").write.mode("overwrite").parquet(str(directory))
    assert check(spark, SourceSpec("s", "parquet", str(directory)))


def test_old_timestamps_are_timestamps(spark: "SparkSession", root: Path) -> None:
    directory = fresh(root)
    table = pa.table({"c": pa.array([0], pa.timestamp("us"))})
    pq.write_table(table, directory / "a.parquet", use_deprecated_int96_timestamps=True)
    assert check(spark, SourceSpec("s", "parquet", str(directory)))


FILE_NAMES = [
    "b.parquet",
    "a.parquet",
    "Z.parquet",
    "part-0",
    "_hidden",
    ".dot",
    "x._COPYING_",
    "sub/c.parquet",
    "é",
]
VALUES = ["1", "-5", "0", "007", "3000000000", "2024-01-31", "2024-02-31", "word", "NaN", "today", "1.5",
          "a%20b",
          "__HIVE_DEFAULT_PARTITION__", "9999999999999999999999", "", "1d", "Two_words", "1 "]  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(FILE_NAMES), schemas([*PLAIN, *UNUSUAL])), min_size=1, max_size=3),
    st.lists(st.sampled_from(VALUES), max_size=3),
    st.sampled_from(["part", "k", "_p"]),
)
@settings(max_examples=2 * settings().max_examples)
def test_parquet_files(
    spark: "SparkSession", root: Path, files: list[Any], values: list[str], column: str
) -> None:
    """The first file that is not hidden decides, and directories are columns."""
    directory = fresh(root)
    for number, (name, schema) in enumerate(files):
        path = directory / (f"{column}={values[number % len(values)]}" if values else ".") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            table = pa.table({name: pa.array([], kind) for name, kind in schema})
            pq.write_table(table, path)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            pass  # Parquet has no such type
    event("known" if check(spark, SourceSpec("s", "parquet", str(directory))) else "left to Spark")
    shutil.rmtree(directory)


@given(
    schemas([*DDL_TYPES[:13] * 6, *DDL_TYPES]),
    st.sampled_from(["csv", "json", "json", "parquet", "text", "orc"]),
    st.sampled_from(["", "part=1", "k=2024-01-01", "id=x", "plain"]),
    st.sampled_from(
        [
            {},
            {},
            {"header": "true"},
            {"maxFilesPerTrigger": "1"},
            {"mergeSchema": "true"},
            {"haeder": "true"},
            {"unheard": "1"},
            {"Mode": "x"},
        ]
    ),
    st.sampled_from([None, None, None, "ts", "TS", "k", "nope", "a.b"]),
    st.sampled_from(
        ["0 seconds", "1 minute", "90 minutes", "2 weeks", "1 month", "-1 second", "soon", "10 Seconds"]
    ),
)
@settings(max_examples=3 * settings().max_examples)
def test_given_schemas(
    spark: "SparkSession",
    root: Path,
    schema: list[tuple[str, str]],
    kind: str,
    inside: str,
    options: dict[str, str],
    event_time: str | None,
    lateness: str,
) -> None:
    directory = fresh(root)
    (directory / inside).mkdir(exist_ok=True)
    if kind == "parquet":
        pq.write_table(pa.table({"k": pa.array([], pa.int64())}), directory / inside / "a.parquet")
    elif inside:
        (directory / inside / "a").write_text("")
    ddl = ", ".join(f"`{name}` {text}" for name, text in schema)
    times = {} if event_time is None else {"event_time": event_time, "lateness": lateness}
    spec = SourceSpec("s", kind, str(directory), ddl, options, **times)
    event("known" if check(spark, spec) else "left to Spark")
    shutil.rmtree(directory)


@pytest.mark.parametrize(
    "ddl",
    ["k long", "`a b` int NOT NULL COMMENT 'x'", "k: long", "k long id", "k", "", "k lnog", "k long, K int",
     "k long,",
     "k decimal(5,9)", "k struct<>", "k timestamp without time zone", "k time", "1k long",
     "k long DEFAULT 5"],
)  # fmt: skip
def test_texts_of_schemas(spark: "SparkSession", root: Path, ddl: str) -> None:
    directory = fresh(root)
    check(spark, SourceSpec("s", "json", str(directory), ddl))


@pytest.mark.parametrize(
    "spec",
    [
        SourceSpec("s", "csv", None, "k long"),
        SourceSpec("s", "parquet", "/nowhere/at/all", "k long"),
        SourceSpec("s", "json", "file:///nowhere/at/all", "k long"),
    ],
)
def test_sources_without_files(spark: "SparkSession", spec: SourceSpec) -> None:
    assert check(spark, spec)


def test_what_spark_keeps_in_files_is_left_to_spark(spark: "SparkSession", root: Path) -> None:
    """A watermark that Spark wrote into a file, and the log of a streaming sink."""
    directory = fresh(root)
    pq.write_table(pa.table({"k": [1]}), directory / "a.parquet")
    (directory / "_spark_metadata").mkdir()
    assert not check(spark, SourceSpec("s", "parquet", str(directory)))
    (directory / "_spark_metadata").rmdir()
    assert check(spark, SourceSpec("s", "parquet", str(directory)))
    noted = fresh(root)
    frame = spark.createDataFrame([], "ts timestamp")
    frame.withMetadata("ts", {"spark.watermarkDelayMs": 5000}).write.mode("overwrite").parquet(str(noted))
    assert not check(spark, SourceSpec("s", "parquet", str(noted)))
