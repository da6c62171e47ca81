"""Which Spark types state can carry: those whose Arrow form is the value itself.

Types are admitted, not excluded. A variant or a geometry would cross the wire as a struct of its bytes and
come out as that struct, and an interval of months has no Arrow form; the user casts such a value in the view.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

_PLAIN = (
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DayTimeIntervalType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)


def unsupported_part(kind: DataType) -> DataType | None:
    """The part of `kind`, or `kind` itself, that state cannot carry; None if it can carry all of it."""
    if isinstance(kind, ArrayType):
        return unsupported_part(kind.elementType)
    if isinstance(kind, MapType):
        return unsupported_part(kind.keyType) or unsupported_part(kind.valueType)
    if isinstance(kind, StructType):
        parts = (unsupported_part(field.dataType) for field in kind.fields)
        return next((part for part in parts if part is not None), None)
    return None if isinstance(kind, _PLAIN) else kind
