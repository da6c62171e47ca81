"""The stateless prefix of an epoch: each input filtered, projected and hashed by Spark, all in one stream.

Inputs have different columns, but one shuffle carries them all: a wire row has a tag (which input), the key
hash, and slots. A slot has a type; the n-th column of that type of every input lies in the n-th slot of that
type, so the wire is as wide as the widest input, not as all together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, DoubleType, FloatType, NullType, StructField, StructType

from spillway.errors import ViewError
from spillway.plan.aggregate_plan import STATISTICS, AggregatePlan
from spillway.plan.evaluate import result_type
from spillway.plan.expression import ColumnRef, Expression
from spillway.plan.join_plan import InputPlan, JoinPlan
from spillway.plan.keys import common_key_type, hash_is_exact
from spillway.plan.planner import Plan
from spillway.plan.statistic_type import check_order, statistic_type
from spillway.spark.payload_types import unsupported_part
from spillway.state.aggregate_operator import AggregateOperator
from spillway.state.operator import HASH_WIRE_COLUMN, TAG_COLUMN, JoinOperator, WireInput


@dataclass(frozen=True, slots=True)
class Wire:
    """A view bound to Spark: the stream of wire rows, and the operator that reads them."""

    stream: DataFrame
    operator: JoinOperator | AggregateOperator
    schema: pa.Schema
    """The result's schema as the view defines it."""
    state_types: tuple[tuple[str, ...], ...]
    """Per input, the Spark types of its state columns, key columns included."""
    key_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Typed:
    """One input after its filter and projection, key parts first, then state columns."""

    frame: DataFrame
    keys: tuple[DataType, ...]
    columns: tuple[StructField, ...]


def bind(plan: Plan, sources: Mapping[str, DataFrame], groups: int) -> Wire:
    """Resolve the plan's expressions against the sources' DataFrames."""
    if isinstance(plan, AggregatePlan):
        return _bind_aggregate(plan, sources[plan.input.source], groups)
    typed = [_typed(one, sources[one.source]) for one in plan.inputs]
    key_types = tuple(
        common_key_type(
            [
                (plan.key_labels[part][number], one.keys[part].simpleString())
                for number, one in enumerate(typed)
            ]
        )
        for part in range(len(plan.inputs[0].keys))
    )
    exact = hash_is_exact(key_types)
    keyed = [_with_keys(one, key_types, exact) for one in typed]
    slots = _slots([fields for _, fields in keyed])
    stream = None
    inputs = []
    for number, (frame, fields) in enumerate(keyed):
        names = _assigned(fields, slots)
        inputs.append(WireInput(plan.inputs[number].name, tuple(field.name for field in fields), names))
        wired = _wired(frame, number, fields, names, slots)
        stream = wired if stream is None else stream.union(wired)
    assert stream is not None
    return _bound(plan, stream, tuple(inputs), [fields for _, fields in keyed], key_types, exact, groups)


def _bound(
    plan: JoinPlan,
    stream: DataFrame,
    inputs: tuple[WireInput, ...],
    fields: list[tuple[StructField, ...]],
    key_types: tuple[str, ...],
    exact: bool,
    groups: int,
) -> Wire:
    arrow = [to_arrow_schema(StructType(list(columns)), timezone="UTC") for columns in fields]

    def type_of(ref: ColumnRef) -> pa.DataType:
        return arrow[ref.input].field(ref.column).type

    schema = pa.schema(
        [
            pa.field(
                output.name,
                type_of(output.value)
                if isinstance(output.value, ColumnRef)
                else result_type(output.value, type_of),
            )
            for output in plan.outputs
        ]
    )
    if plan.residual is not None and not pa.types.is_boolean(result_type(plan.residual, type_of)):
        raise ViewError("the join condition is not a boolean expression; compare its parts")
    key_columns = tuple(
        () if exact else tuple(range(len(columns) - len(key_types), len(columns))) for columns in fields
    )
    operator = JoinOperator(
        inputs=inputs,
        outputs=tuple(output.value for output in plan.outputs),
        residual=plan.residual,
        key_columns=key_columns,
        groups=groups,
        result_schema=schema,
        windows=plan.windows,
    )
    types = tuple(tuple(field.dataType.simpleString() for field in columns) for columns in fields)
    return Wire(stream, operator, schema, types, key_types)


def _bind_aggregate(plan: AggregatePlan, source: DataFrame, groups: int) -> Wire:
    """Keys are always kept: a null key is one too, and no hash of 64 bits is left for it."""
    typed = _typed(plan.input, source)
    labels = [label for (label,) in plan.key_labels]
    key_types = tuple(
        common_key_type([(label, key.simpleString())]) for label, key in zip(labels, typed.keys, strict=True)
    )
    frame, columns = _with_keys(typed, key_types, exact=False, nulls=True)
    kept, keys = plan.kept, len(key_types)
    fields = (*columns[:kept], *columns[-keys:], *columns[kept:-keys])
    slots = _slots([fields])
    names = _assigned(fields, slots)
    arrow = to_arrow_schema(StructType(list(fields)), timezone="UTC")

    def moved(value: Expression) -> Expression:
        """Columns that wait with their row come after the keys."""
        if isinstance(value, ColumnRef) and value.input == 0 and value.column >= kept:
            return ColumnRef(0, value.column + keys)
        return value

    def type_of(ref: ColumnRef) -> pa.DataType:
        if ref.input == 0:
            return arrow.field(ref.column).type
        one = plan.statistics[ref.column]
        return statistic_type(one.function, None if one.argument is None else arrow.field(one.argument).type)

    for column in plan.order:
        check_order(plan.column_label(ColumnRef(0, column)), arrow.field(column).type)
    for number in range(len(plan.statistics)):
        type_of(ColumnRef(STATISTICS, number))
    outputs = tuple(moved(output.value) for output in plan.outputs)
    schema = pa.schema(
        [
            pa.field(
                output.name, type_of(value) if isinstance(value, ColumnRef) else result_type(value, type_of)
            )
            for output, value in zip(plan.outputs, outputs, strict=True)
        ]
    )
    operator = AggregateOperator(
        inputs=(WireInput(plan.input.name, tuple(field.name for field in fields), names),),
        outputs=outputs,
        statistics=plan.statistics,
        key_columns=tuple(range(kept, kept + keys)),
        time=plan.time,
        order=plan.order,
        kept=kept + keys,
        lateness_us=plan.lateness_us,
        groups=groups,
        result_schema=schema,
    )
    types = (tuple(field.dataType.simpleString() for field in fields),)
    return Wire(_wired(frame, 0, fields, names, slots), operator, schema, types, key_types)


def _typed(one: InputPlan, source: DataFrame) -> _Typed:
    try:
        frame = source if one.filter is None else source.where(one.filter)
        keys = [F.expr(key).alias(f"k{part}") for part, key in enumerate(one.keys)]
        columns = [F.expr(column.expression).alias(column.name) for column in one.columns]
        frame = frame.select(*keys, *columns)
    except (AnalysisException, ParseException) as error:
        raise ViewError(f"input {one.name}: {_first_line(error)}") from None
    fields = tuple(frame.schema.fields)
    for field, column in zip(fields[len(keys) :], one.columns, strict=True):
        if isinstance(field.dataType, NullType):
            raise ViewError(f"{one.name}.{column.label} has no type (NULL); cast it to one")
        part = unsupported_part(field.dataType)
        if part is not None:
            raise ViewError(
                f"{one.name}.{column.label} is {field.dataType.simpleString()}, and a view cannot carry "
                f"{part.simpleString()}; cast it in the view, to string for example, or leave it out"
            )
    return _Typed(frame, tuple(field.dataType for field in fields[: len(keys)]), fields[len(keys) :])


def _with_keys(
    one: _Typed, key_types: tuple[str, ...], exact: bool, *, nulls: bool = False
) -> tuple[DataFrame, tuple[StructField, ...]]:
    """Rows whose key is not null, or all, with the key parts in their common type and normal form."""
    names = [f"k{part}" for part in range(len(key_types))]
    keys = [_normal(name, type_).alias(name) for name, type_ in zip(names, key_types, strict=True)]
    frame = one.frame.select(*keys, *(field.name for field in one.columns))
    for name in () if nulls else names:
        frame = frame.where(F.col(name).isNotNull())
    frame = frame.withColumn(HASH_WIRE_COLUMN, F.xxhash64(*names))
    kept = () if exact else tuple(frame.schema[name] for name in names)
    return frame, (*one.columns, *kept)


def _normal(name: str, type_: str) -> Column:
    """Zeroes and NaNs have several bit patterns; equal keys must have one."""
    column = F.col(name).cast(type_)
    if type_ in (DoubleType().simpleString(), FloatType().simpleString()):
        nan = F.lit(float("nan")).cast(type_)
        zero = F.lit(0.0).cast(type_)
        return F.when(F.isnan(column), nan).when(column == zero, zero).otherwise(column)
    return column


def _slots(inputs: list[tuple[StructField, ...]]) -> dict[str, tuple[DataType, int]]:
    """Per type, how many slots it needs; the order of the dictionary is the order of the slots."""
    slots: dict[str, tuple[DataType, int]] = {}
    for fields in inputs:
        counts: dict[str, int] = {}
        for field in fields:
            kind = field.dataType.json()
            counts[kind] = counts.get(kind, 0) + 1
            known = slots.get(kind, (field.dataType, 0))[1]
            slots[kind] = (field.dataType, max(known, counts[kind]))
    return slots


def _assigned(fields: tuple[StructField, ...], slots: Mapping[str, tuple[DataType, int]]) -> tuple[str, ...]:
    order = list(slots)
    counts: dict[str, int] = {}
    names = []
    for field in fields:
        kind = field.dataType.json()
        names.append(f"s{order.index(kind)}_{counts.get(kind, 0)}")
        counts[kind] = counts.get(kind, 0) + 1
    return tuple(names)


def _wired(
    frame: DataFrame,
    number: int,
    fields: tuple[StructField, ...],
    names: tuple[str, ...],
    slots: Mapping[str, tuple[DataType, int]],
) -> DataFrame:
    held = dict(zip(names, fields, strict=True))
    columns = []
    for kind, (data_type, count) in enumerate(slots.values()):
        for index in range(count):
            name = f"s{kind}_{index}"
            column = F.col(held[name].name) if name in held else F.lit(None).cast(data_type)
            columns.append(column.alias(name))
    return frame.select(F.lit(number).cast("tinyint").alias(TAG_COLUMN), HASH_WIRE_COLUMN, *columns)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
