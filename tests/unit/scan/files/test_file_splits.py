"""Which files are split for tasks, into what, and which are left to Spark."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kit.scans import native_scan
from spillway.errors import SourceError
from spillway.scan import ARROW, ScanInput, Split, read
from spillway.scan.files import file_splits

UTC = pa.timestamp("us", "UTC")


def scan(columns: str = "k long, x int", condition: str = "true") -> ScanInput:
    """A scan of all columns but the key."""
    names = [part.split()[0] for part in columns.split(", ")][1:]
    items = ", ".join(f"a.{name}" for name in names)
    return native_scan(
        f"SELECT {items}, b.k AS other FROM a JOIN b ON a.k = b.k WHERE {condition}",
        {"a": columns, "b": "k long"},
    )


def write(path: Path, table: pa.Table, **options: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return str(path)


def rows(found: ScanInput, splits: tuple[Split, ...] | str) -> list[dict[str, object]]:
    assert not isinstance(splits, str), splits
    return [row for split in splits for batch in read(found, split, 3) for row in batch.to_pylist()]


def test_a_split_per_row_group_with_the_bytes_of_the_columns_that_are_read(tmp_path: Path) -> None:
    table = pa.table({"k": range(10), "x": pa.array(range(10), pa.int32()), "wide": ["x" * 1000] * 10})
    path = write(tmp_path / "f.parquet", table, row_group_size=4)
    splits = file_splits(path, scan())
    assert isinstance(splits, tuple)
    assert [(split.groups, split.rows) for split in splits] == [((0,), 4), ((1,), 4), ((2,), 2)]
    assert all(0 < split.bytes < 1000 for split in splits)
    assert {split.file_bytes for split in splits} == {Path(path).stat().st_size}
    assert [row["s0"] for row in rows(scan(), splits)] == list(range(10))


def test_row_groups_that_the_filter_excludes_are_not_read(tmp_path: Path) -> None:
    table = pa.table({"k": range(12), "x": pa.array(range(12), pa.int32())})
    path = write(tmp_path / "f.parquet", table, row_group_size=4)
    found = scan(condition="a.x >= 5 AND a.x < 8")
    splits = file_splits(path, found)
    assert [split.groups for split in splits] == [(1,)]  # type: ignore[union-attr]
    assert [row["s0"] for row in rows(found, splits)] == [5, 6, 7]


def test_nan_is_above_all_numbers_although_statistics_leave_it_out(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2, 3], "x": [0.0, float("nan"), None]})
    path = write(tmp_path / "f.parquet", table)
    found = scan("k long, x double", "a.x > 5D")
    assert len(rows(found, file_splits(path, found))) == 1


def test_columns_are_found_by_name_in_any_case_and_order_and_missing_ones_are_null(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", pa.table({"S": ["a"], "other": [1], "K": [7]}))
    found = scan("k long, x int, s string")
    assert [(row["s0"], row["s1"]) for row in rows(found, file_splits(path, found))] == [(None, "a")]


def test_a_file_without_the_key_has_no_rows_and_one_without_any_column_has_none_either(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "f.parquet", pa.table({"x": pa.array([1], pa.int32())}))
    assert rows(scan(), file_splits(path, scan())) == []
    path = write(tmp_path / "g.parquet", pa.table({"other": [1]}))
    assert rows(scan(), file_splits(path, scan())) == []


def test_directories_are_columns(tmp_path: Path) -> None:
    found = scan("k long, x int, s string, d date", "a.x > 3")
    for x in (3, 4):
        write(tmp_path / f"X={x}" / "d=2024-02-03" / "s=a%20b" / "f.parquet", pa.table({"k": [1, 2]}))
    root = str(tmp_path)
    three, four = (str(tmp_path / f"X={x}" / "d=2024-02-03" / "s=a%20b" / "f.parquet") for x in (3, 4))
    assert file_splits(three, found, root=root) == ()
    made = rows(found, file_splits(four, found, root=root))
    assert [(row["s0"], row["s1"], row["s2"]) for row in made] == [(4, "a b", dt.date(2024, 2, 3))] * 2


def test_a_file_of_which_only_directories_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "k=5" / "x=__HIVE_DEFAULT_PARTITION__" / "f.parquet", pa.table({"other": range(7)})
    )
    made = rows(scan(), file_splits(path, scan(), root=str(tmp_path)))
    assert [row["s0"] for row in made] == [None] * 7


@pytest.mark.parametrize(("condition", "count"), [("a.x IS NULL", 1), ("a.x IS NOT NULL", 0), ("a.x > 1", 0)])
def test_filters_over_columns_that_are_null(tmp_path: Path, condition: str, count: int) -> None:
    found = scan(condition=condition)
    missing = write(tmp_path / "f.parquet", pa.table({"k": [1]}))
    assert len(rows(found, file_splits(missing, found))) == count
    null = write(tmp_path / "x=__HIVE_DEFAULT_PARTITION__" / "f.parquet", pa.table({"k": [1]}))
    splits = file_splits(null, found, root=str(tmp_path))
    assert len(splits) == len(rows(found, splits)) == count


@pytest.mark.parametrize(
    ("kind", "declared", "options"),
    [
        (pa.int64(), "int", {}),
        (pa.int32(), "bigint", {}),
        (pa.uint8(), "smallint", {}),
        (pa.uint32(), "bigint", {}),
        (UTC, "timestamp_ntz", {"use_deprecated_int96_timestamps": True}),
        (pa.timestamp("ns", "UTC"), "timestamp", {}),
        (pa.timestamp("us"), "timestamp", {}),
        (UTC, "timestamp_ntz", {}),
        (pa.binary(4), "binary", {}),
        (pa.time64("us"), "bigint", {}),
        (pa.decimal128(10, 2), "decimal(12,2)", {}),
        (pa.string(), "binary", {}),
        (pa.binary(), "string", {}),
        (pa.null(), "int", {}),
        (pa.float16(), "float", {}),
        (pa.list_(pa.int32()), "int", {}),
        (pa.struct([("x", pa.int32())]), "int", {}),
    ],
)
def test_other_types_than_declared_are_left_to_spark(
    tmp_path: Path, kind: pa.DataType, declared: str, options: dict[str, bool]
) -> None:
    path = write(tmp_path / "f.parquet", pa.table({"k": [1], "x": pa.nulls(1, kind)}), **options)
    reason = file_splits(path, scan(f"k long, x {declared}"))
    assert isinstance(reason, str)
    assert path in reason and " x " in reason and declared in reason


@pytest.mark.parametrize("stored", [True, False])
def test_int96_holds_microseconds_of_any_year(tmp_path: Path, stored: bool) -> None:
    times = [-(10**17) - 1, -1, 0, 1, 10**17 + 1]
    table = pa.table({"k": range(5), "x": pa.array(times, UTC)})
    path = write(tmp_path / "f.parquet", table, use_deprecated_int96_timestamps=True, store_schema=stored)
    found = scan("k long, x timestamp")
    splits = file_splits(path, found)
    assert isinstance(splits, tuple)
    (batch,) = (batch for split in splits for batch in read(found, split))
    assert batch["s0"].type == UTC
    assert batch["s0"].cast(pa.int64()).to_pylist() == times


def test_paths_elsewhere_are_left_to_spark() -> None:
    assert file_splits("s3://bucket/f.parquet", scan()) == "s3://bucket/f.parquet is not on this machine"


@pytest.mark.parametrize(
    "notes",
    [
        {"org.apache.spark.version": "2.4.8"},
        {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""},
    ],
)
def test_dates_of_another_calendar_are_left_to_spark(tmp_path: Path, notes: dict[str, str]) -> None:
    table = pa.table({"k": [1], "x": pa.array([1], pa.date32())})
    path = write(tmp_path / "f.parquet", table.replace_schema_metadata(notes))
    assert file_splits(path, scan("k long, x date")) == f"{path} has dates in the calendar of Spark 2"
    assert isinstance(file_splits(path, scan("k long")), tuple)
    plain = write(
        tmp_path / "g.parquet", table.replace_schema_metadata({"org.apache.spark.version": "4.3.0"})
    )
    assert isinstance(file_splits(plain, scan("k long, x date")), tuple)


def test_a_column_inside_a_struct_of_its_name_is_left_to_spark(tmp_path: Path) -> None:
    """One without nulls has the levels of a plain column."""
    kind = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = pa.schema([("k", pa.int64()), pa.field("x", kind, nullable=False)])
    path = write(tmp_path / "f.parquet", pa.table({"k": [1], "x": [{"x": 1}]}, schema))
    assert isinstance(file_splits(path, scan()), str)


def test_a_column_twice_is_left_to_spark(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["k", "K"])
    path = write(tmp_path / "f.parquet", table)
    assert file_splits(path, scan("k long")) == f"{path} has k more than once, or nested"


def test_values_of_directories_with_several_readings_are_left_to_spark(tmp_path: Path) -> None:
    path = write(tmp_path / "x=007" / "f.parquet", pa.table({"k": [1]}))
    assert file_splits(path, scan(), root=str(tmp_path)) == "only Spark reads '007' as int"
    path = write(tmp_path / "x=1" / "plain" / "f.parquet", pa.table({"k": [1]}))
    reason = file_splits(path, scan(), root=str(tmp_path))
    assert reason == f"{path} has directories that only Spark reads"


def test_encrypted_files_are_left_to_spark_and_empty_ones_have_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(b"PARE" + b"x" * 100 + b"PARE")
    assert file_splits(str(path), scan()) == f"{path} is encrypted"
    path.write_bytes(b"")
    assert file_splits(str(path), scan()) == ()


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_damaged_and_vanished_files_are_named(tmp_path: Path, file_format: str) -> None:
    path = tmp_path / "f"
    with pytest.raises(SourceError, match=rf"file {path} is gone; put it back"):
        file_splits(str(path), scan(), format=file_format)  # type: ignore[arg-type]
    path.write_bytes(b"no columns here" * 10)
    with pytest.raises(SourceError, match=rf"file {path} cannot be read \(.*write it again") as caught:
        file_splits(str(path), scan(), format=file_format)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_file_that_changed_after_it_was_split_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    write(path, pa.table({"k": range(1000), "x": pa.array(range(1000), pa.int32())}))
    splits = file_splits(str(path), scan())
    data = bytearray(path.read_bytes())
    data[4:4000] = bytes(3996)
    path.write_bytes(data)
    with pytest.raises(SourceError, match=rf"file {path} cannot be read ") as caught:
        rows(scan(), splits)
    assert "\n" not in str(caught.value)
    path.write_bytes(data + b"more")
    with pytest.raises(
        SourceError, match=rf"file {path} cannot be read \(it has \d+ bytes now.*write it again"
    ):
        rows(scan(), splits)
    path.unlink()
    with pytest.raises(SourceError, match=rf"file {path} is gone; put it back"):
        rows(scan(), splits)


def test_arrow_files(tmp_path: Path) -> None:
    path = tmp_path / "f.arrow"
    text = pa.array(["a", "b", None, "a", "c"]).dictionary_encode()
    times = pa.array([1, 2, 3, 4, 5], pa.timestamp("ms", "Asia/Tokyo"))
    table = pa.table({"other": range(5), "S": text, "k": pa.array(range(5)), "x": times})
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table, max_chunksize=4)
    found = scan("k long, s string, x timestamp")
    splits = file_splits(str(path), found, format=ARROW)
    assert [(split.groups, split.rows) for split in splits] == [((0,), 4), ((1,), 1)]  # type: ignore[union-attr]
    made = rows(found, splits)
    assert [row["s0"] for row in made] == ["a", "b", None, "a", "c"]
    assert [row["s1"].microsecond for row in made] == [1000, 2000, 3000, 4000, 5000]  # type: ignore[attr-defined]
    batch = next(read(found, splits[0]))  # type: ignore[arg-type]
    assert [field.type for field in batch.schema] == [pa.int8(), pa.int64(), pa.string(), UTC]
    reason = file_splits(str(path), scan("k int"), format=ARROW)
    assert reason == f"{path} has k as int64, not as int"
