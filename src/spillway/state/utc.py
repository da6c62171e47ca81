"""Instants in one notation: Arrow writes the time zone of Spark's session into the type of a timestamp.

The value is the same in every zone, but arrays of two zones cannot be concatenated. Invariant: state has
instants in UTC, so a restart in another zone goes on with the runs of the first.
"""

import pyarrow as pa
from pyarrow import types


def utc_type(kind: pa.DataType) -> pa.DataType:
    """`kind` with every instant in it, nested ones included, in UTC."""
    if types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")
    if types.is_map(kind):
        return pa.map_(_utc_field(kind.key_field), _utc_field(kind.item_field))
    if types.is_list(kind):
        return pa.list_(_utc_field(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_utc_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_utc_field(part) for part in kind])
    return kind


def in_utc(array: pa.Array) -> pa.Array:
    """The same instants; nothing is copied where there are none or they are in UTC already."""
    kind = utc_type(array.type)
    return array if kind == array.type else array.cast(kind)


def _utc_field(field: pa.Field) -> pa.Field:
    return field.with_type(utc_type(field.type))
