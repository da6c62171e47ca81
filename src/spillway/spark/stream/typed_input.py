"""Which Spark types state can carry: those whose Arrow form is the value itself.

Types are admitted, not excluded. A variant or a geometry would cross the wire as a struct of its bytes and
come out as that struct, and an interval of months has no Arrow form; the user casts such a value in the view.

One input of a view after its filter and projection, with the types that Spark's analysis finds.
"""

from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
)

from spillway.errors import ViewError
from spillway.plan.operators import InputPlan

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


@dataclass(frozen=True, slots=True)
class TypedInput:
    """One input after its filter and projection, key parts first, then state columns."""

    frame: DataFrame
    keys: tuple[DataType, ...]
    columns: tuple[StructField, ...]


def typed_input(plan: InputPlan, source: DataFrame) -> TypedInput:
    try:
        frame = source if plan.filter is None else source.where(plan.filter)
        keys = [F.expr(key).alias(f"k{part}") for part, key in enumerate(plan.keys)]
        columns = [F.expr(column.expression).alias(column.name) for column in plan.columns]
        frame = frame.select(*keys, *columns)
    except (AnalysisException, ParseException) as error:
        raise ViewError(f"input {plan.name}: {_first_line(error)}") from None
    fields = tuple(frame.schema.fields)
    for field, column in zip(fields[len(keys) :], plan.columns, strict=True):
        if isinstance(field.dataType, NullType):
            raise ViewError(f"{plan.name}.{column.label} has no type (NULL); cast it to one")
        part = unsupported_part(field.dataType)
        if part is not None:
            raise ViewError(
                f"{plan.name}.{column.label} is {field.dataType.simpleString()}, and a view cannot carry "
                f"{part.simpleString()}; cast it in the view, to string for example, or leave it out"
            )
    return TypedInput(frame, tuple(field.dataType for field in fields[: len(keys)]), fields[len(keys) :])


def normal_key(name: str, type_: str) -> Column:
    """Zeroes and NaNs have several bit patterns; equal keys must have one."""
    column = F.col(name).cast(type_)
    if type_ in (DoubleType().simpleString(), FloatType().simpleString()):
        nan = F.lit(float("nan")).cast(type_)
        zero = F.lit(0.0).cast(type_)
        return F.when(F.isnan(column), nan).when(column == zero, zero).otherwise(column)
    return column


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
