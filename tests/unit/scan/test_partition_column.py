"""Names of directories as columns, and which of their values are read without Spark."""

import datetime as dt

import pytest

from spillway.scan import partition_value, path_partitions


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/r/f.parquet", ()),
        ("/r/plain/f.parquet", ()),
        ("/r/p=1/q=x y/f.parquet", (("p", "1"), ("q", "x y"))),
        ("/r/p=a%3Db%2Fc/f.parquet", (("p", "a=b/c"),)),
        ("/r/p=__HIVE_DEFAULT_PARTITION__/f.parquet", (("p", None),)),
        ("/r/p=%C3%A4/f.parquet", None),  # two characters to Spark
        ("/r/p=ä/f.parquet", (("p", "ä"),)),
        ("/r/p=1/plain/f.parquet", None),
        ("/r/p=/f.parquet", None),
        ("/r/p=1/P=2/f.parquet", None),
        ("/elsewhere/p=1/f.parquet", None),
    ],
)
def test_columns_in_a_path(path: str, found: object) -> None:
    assert path_partitions(path, "/r/") == found


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        (None, "int", None),
        ("", "string", ""),
        ("007", "string", "007"),
        ("-12", "tinyint", -12),
        ("0", "bigint", 0),
        ("-9223372036854775808", "bigint", -(2**63)),
        ("2024-02-29", "date", dt.date(2024, 2, 29)),
    ],
)
def test_values_with_one_reading(text: str | None, type_: str, value: object) -> None:
    assert partition_value(text, type_) == value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("007", "int"), ("+1", "int"), ("-0", "int"), (" 1", "int"), ("128", "tinyint"), ("x", "int"),
        ("9223372036854775808", "bigint"), ("2023-02-29", "date"), ("2024-1-1", "date"), ("1.0", "double"),
        ("true", "boolean"), ("2024-01-01 00:00:00", "timestamp"), ("٣", "int"),
    ],
)  # fmt: skip
def test_values_that_only_spark_reads(text: str, type_: str) -> None:
    with pytest.raises(ValueError):
        partition_value(text, type_)
