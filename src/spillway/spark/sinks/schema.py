"""The Arrow schema in which result files are written, so that every reader of the sink agrees on it.

Timestamps become microseconds, in UTC if they have a zone; unsigned integers the next wider signed type;
views, dictionaries and large variants their plain type. All columns are nullable: a view's nullability is
inferred by the planner and may change between versions. Types that Delta and Spark's Parquet cannot hold are
refused by name. Invariant: the mapping is idempotent. Known limit: nanoseconds are cut to microseconds, as
everywhere in Spark.
"""

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

from spillway.errors import SinkError

DELTA_FORBIDDEN_CHARACTERS = " ,;{}()\n\t="
"""What the Delta protocol does not allow in a column's name without column mapping."""

_Test = Callable[[pa.DataType], bool]

_UNCHANGED: tuple[_Test, ...] = (
    types.is_boolean,
    types.is_signed_integer,
    types.is_float32,
    types.is_float64,
    types.is_date32,
    types.is_string,
    types.is_binary,
)

_REPLACED: tuple[tuple[_Test, pa.DataType], ...] = (
    (types.is_uint8, pa.int16()),
    (types.is_uint16, pa.int32()),
    (types.is_uint32, pa.int64()),
    (types.is_uint64, pa.decimal128(20, 0)),
    (types.is_float16, pa.float32()),
    (types.is_date64, pa.date32()),
    (types.is_large_string, pa.string()),
    (types.is_string_view, pa.string()),
    (types.is_large_binary, pa.binary()),
    (types.is_binary_view, pa.binary()),
    (types.is_fixed_size_binary, pa.binary()),
)


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the result files of a view with output `schema`; SinkError names columns that cannot
    be written."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if name.lower() in seen:
            raise SinkError(
                f"columns {seen[name.lower()]!r} and {name!r} of the view are the same name to "
                "readers that ignore case; give one of them another name with AS"
            )
        seen[name.lower()] = name
    if not seen:
        raise SinkError("the view has no columns; select at least one")
    return pa.schema([pa.field(field.name, _parquet_type(field.name, field.type)) for field in schema])


def check_delta_names(schema: pa.Schema) -> None:
    """Refuse column names that a Delta table cannot have."""
    for name in schema.names:
        bad = sorted({character for character in name if character in DELTA_FORBIDDEN_CHARACTERS})
        if bad:
            raise SinkError(
                f"column {name!r} has {' '.join(map(repr, bad))} in its name, which Delta does not allow; "
                "give it another name with AS, or write to sink format 'parquet'"
            )


def _parquet_type(column: str, kind: pa.DataType) -> pa.DataType:
    if any(test(kind) for test in _UNCHANGED):
        return kind
    for test, replacement in _REPLACED:
        if test(kind):
            return replacement
    if types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if types.is_dictionary(kind):
        return _parquet_type(column, kind.value_type)
    if types.is_map(kind):
        key = _parquet_type(f"{column}.key", kind.key_type)
        return pa.map_(key, _parquet_type(f"{column}.value", kind.item_type))
    if _is_list(kind):
        return pa.list_(pa.field("element", _parquet_type(f"{column}.element", kind.value_type)))
    if types.is_struct(kind) and kind.num_fields:
        return pa.struct(
            [pa.field(part.name, _parquet_type(f"{column}.{part.name}", part.type)) for part in kind]
        )
    raise SinkError(
        f"column {column!r} has type {kind}, which neither Delta nor Parquet as Spark reads it can hold; "
        "CAST it in the view (to BIGINT or STRING) or leave it out"
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
