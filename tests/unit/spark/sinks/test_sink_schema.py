"""The types of result files: what is mapped, what is refused, and that mapping twice changes nothing."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import SinkError
from spillway.spark.sinks.schema import parquet_schema

LEAVES = st.sampled_from(
    [
        *(pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_()),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary(4), pa.binary_view()),
        *(pa.date32(), pa.date64(), pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.decimal128(10, 2)),
        *(pa.decimal64(12, 3), pa.decimal256(38, 0), pa.dictionary(pa.int32(), pa.large_string())),
    ]
)


def nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        kinds.map(pa.list_),
        kinds.map(pa.large_list),
        kinds.map(lambda kind: pa.list_(kind, 3)),
        kinds.map(lambda kind: pa.map_(pa.string(), kind)),
        st.lists(kinds, min_size=1, max_size=3).map(
            lambda parts: pa.struct([pa.field(f"f{n}", part, nullable=False) for n, part in enumerate(parts)])
        ),
    )


@given(st.lists(st.recursive(LEAVES, nested, max_leaves=4), min_size=1, max_size=4))
def test_mapping_is_idempotent_and_keeps_names(kinds: list[pa.DataType]) -> None:
    schema = pa.schema([pa.field(f"c{n}", kind, nullable=False) for n, kind in enumerate(kinds)])
    mapped = parquet_schema(schema)
    assert mapped.names == schema.names
    assert parquet_schema(mapped).equals(mapped, check_metadata=True)
    assert all(field.nullable for field in mapped)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_list(pa.uint8()), pa.list_(pa.field("element", pa.int16()))),
    ],
)
def test_mapped(kind: pa.DataType, expected: pa.DataType) -> None:
    assert parquet_schema(pa.schema([("c", kind)])).field("c").type == expected


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.duration("us"), "c"),
        (pa.month_day_nano_interval(), "c"),
        (pa.time64("us"), "c"),
        (pa.null(), "c"),
        (pa.decimal256(50, 2), "c"),
        (pa.struct([]), "c"),
        (pa.list_(pa.struct([("t", pa.time32("s"))])), "c.element.t"),
        (pa.map_(pa.string(), pa.duration("s")), "c.value"),
    ],
)
def test_refused_with_column_and_type(kind: pa.DataType, column: str) -> None:
    with pytest.raises(SinkError, match=f"column '{column}' has type ") as caught:
        parquet_schema(pa.schema([("c", kind)]))
    assert "\n" not in str(caught.value)


def test_names_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(SinkError, match="'id' and 'ID'"):
        parquet_schema(pa.schema([("id", pa.int64()), ("ID", pa.int64())]))
    with pytest.raises(SinkError, match="no columns"):
        parquet_schema(pa.schema([]))
