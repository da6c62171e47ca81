"""One input of a view after its filter and projection, with the types that Spark's analysis finds."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from spillway.errors import ViewError
from spillway.plan.operators import InputPlan
from spillway.plan.typing import ColumnType, InputTypes


@dataclass(frozen=True, slots=True)
class TypedInput:
    """One input after its filter and projection, key parts first, then state columns."""

    frame: DataFrame
    columns: tuple[StructField, ...]
    types: InputTypes


def typed_input(plan: InputPlan, source: DataFrame) -> TypedInput:
    try:
        frame = source if plan.filter is None else source.where(plan.filter)
        keys = [F.expr(key).alias(f"k{part}") for part, key in enumerate(plan.keys)]
        columns = [F.expr(column.expression).alias(column.name) for column in plan.columns]
        frame = frame.select(*keys, *columns)
    except (AnalysisException, ParseException) as error:
        raise ViewError(f"input {plan.name}: {_first_line(error)}") from None
    fields = tuple(frame.schema.fields)
    kept = fields[len(keys) :]
    key_types = tuple(field.dataType.simpleString() for field in fields[: len(keys)])
    return TypedInput(frame, kept, InputTypes(key_types, tuple(map(_column_type, kept))))


def _column_type(field: StructField) -> ColumnType:
    try:
        arrow = to_arrow_schema(StructType([field]), timezone="UTC").field(0).type
    except PySparkException:
        arrow = pa.null()  # a type without an Arrow form, which state cannot carry
    return ColumnType(field.dataType.simpleString(), arrow, tuple(_leaves(field.dataType)))


def _leaves(kind: DataType) -> Iterator[str]:
    """The types inside that are not nested."""
    if isinstance(kind, ArrayType):
        yield from _leaves(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _leaves(kind.keyType)
        yield from _leaves(kind.valueType)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from _leaves(field.dataType)
    else:
        yield kind.simpleString()


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
