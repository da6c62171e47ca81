"""The stateless prefix of an epoch: each input filtered, projected and hashed by Spark, all in one stream.

Inputs have different columns, but one shuffle carries them all: a wire row has a tag (which input), the key
hash, and slots that inputs share by type (`wire_slots`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from spillway.errors import ViewError
from spillway.plan.expression import (
    STATISTICS,
    ColumnRef,
    Expression,
    check_order,
    describe,
    result_type,
    spark_type,
    statistic_type,
)
from spillway.plan.operators import (
    AggregatePlan,
    JoinPlan,
    TreePlan,
    common_key_type,
    hash_is_exact,
)
from spillway.plan.rules import Plan
from spillway.spark.stream.slots import assigned_slots, shared_slots, wired
from spillway.spark.stream.tree_wire import bind_tree_plan
from spillway.spark.stream.typed_input import TypedInput, normal_key, typed_input
from spillway.state.frame import FrameOperator
from spillway.state.graph import Graph
from spillway.state.join import JoinOperator
from spillway.state.step import HASH_WIRE_COLUMN, WireInput


@dataclass(frozen=True, slots=True)
class Wire:
    """A view bound to Spark: the stream of wire rows, and the graph of operators that reads them."""

    stream: DataFrame
    graph: Graph
    schema: pa.Schema
    """The result's schema as the view defines it."""
    state_types: tuple[tuple[str, ...], ...]
    """Per input, the Spark types of its state columns, key columns included."""
    key_types: tuple[str, ...]


def bind(plan: Plan, sources: Mapping[str, DataFrame], groups: int) -> Wire:
    """Resolve the plan's expressions against the sources' DataFrames."""
    return _BINDERS[plan.kind](plan, sources, groups)


def _bind_tree(plan: TreePlan, sources: Mapping[str, DataFrame], groups: int) -> Wire:
    rows, graph, types, kinds = bind_tree_plan(plan, sources, groups)
    return Wire(rows, graph, graph.result_schema, types, kinds)


def _bind_join(plan: JoinPlan, sources: Mapping[str, DataFrame], groups: int) -> Wire:
    typed = [typed_input(input_, sources[input_.source]) for input_ in plan.inputs]
    key_types = tuple(
        common_key_type(
            [
                (plan.key_labels[part][number], input_.keys[part].simpleString())
                for number, input_ in enumerate(typed)
            ]
        )
        for part in range(len(plan.inputs[0].keys))
    )
    exact = hash_is_exact(key_types)
    keyed = [_with_keys(input_, key_types, exact) for input_ in typed]
    slots = shared_slots([fields for _, fields in keyed])
    stream = None
    inputs = []
    for number, (frame, fields) in enumerate(keyed):
        names = assigned_slots(fields, slots)
        labels = [plan.column_label(ColumnRef(number, place)) for place in range(len(typed[number].columns))]
        keys = tuple(field.name for field in fields[len(labels) :])
        inputs.append(
            WireInput(
                plan.inputs[number].name, tuple(field.name for field in fields), names, (*labels, *keys)
            )
        )
        rows = wired(frame, number, fields, names, slots)
        stream = rows if stream is None else stream.union(rows)
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
                else result_type(output.value, type_of, plan.column_label),
            )
            for output in plan.outputs
        ]
    )
    if plan.residual is not None:
        kind = result_type(plan.residual, type_of, plan.column_label)
        if not pa.types.is_boolean(kind):
            shown = describe(plan.residual, plan.column_label)
            raise ViewError(f"the condition {shown} is {spark_type(kind)}, not boolean; write a comparison")
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
    return Wire(stream, Graph.of_one(operator), schema, types, key_types)


def _bind_aggregate(plan: AggregatePlan, sources: Mapping[str, DataFrame], groups: int) -> Wire:
    """Keys are always kept: a null key is one too, and no hash of 64 bits is left for it."""
    typed = typed_input(plan.input, sources[plan.input.source])
    labels = [label for (label,) in plan.key_labels]
    key_types = tuple(
        common_key_type([(label, key.simpleString())]) for label, key in zip(labels, typed.keys, strict=True)
    )
    frame, columns = _with_keys(typed, key_types, exact=False, nulls=True)
    kept, keys = plan.kept, len(key_types)
    fields = (*columns[:kept], *columns[-keys:], *columns[kept:-keys])
    slots = shared_slots([fields])
    names = assigned_slots(fields, slots)
    arrow = to_arrow_schema(StructType(list(fields)), timezone="UTC")

    def moved(value: Expression) -> Expression:
        """Columns that wait with their row come after the keys."""
        if isinstance(value, ColumnRef) and value.input == 0 and value.column >= kept:
            return ColumnRef(0, value.column + keys)
        return value

    def type_of(ref: ColumnRef) -> pa.DataType:
        if ref.input == 0:
            return arrow.field(ref.column).type
        statistic = plan.statistics[ref.column]
        return statistic_type(
            statistic.function, None if statistic.argument is None else arrow.field(statistic.argument).type
        )

    for column in plan.order:
        check_order(plan.column_label(ColumnRef(0, column)), arrow.field(column).type)
    labels_of_statistics = tuple(
        plan.column_label(ColumnRef(STATISTICS, number)) for number in range(len(plan.statistics))
    )
    for number, shown in enumerate(labels_of_statistics):
        try:
            type_of(ColumnRef(STATISTICS, number))
        except ViewError as error:
            raise ViewError(f"{error} (in {shown})") from None
    outputs = tuple(moved(output.value) for output in plan.outputs)
    schema = pa.schema(
        [
            pa.field(
                output.name, type_of(value) if isinstance(value, ColumnRef) else result_type(value, type_of)
            )
            for output, value in zip(plan.outputs, outputs, strict=True)
        ]
    )
    operator = FrameOperator(
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
        statistic_labels=labels_of_statistics,
    )
    types = (tuple(field.dataType.simpleString() for field in fields),)
    return Wire(wired(frame, 0, fields, names, slots), Graph.of_one(operator), schema, types, key_types)


def _with_keys(
    input_: TypedInput, key_types: tuple[str, ...], exact: bool, *, nulls: bool = False
) -> tuple[DataFrame, tuple[StructField, ...]]:
    """Rows whose key is not null, or all, with the key parts in their common type and normal form."""
    names = [f"k{part}" for part in range(len(key_types))]
    keys = [normal_key(name, type_).alias(name) for name, type_ in zip(names, key_types, strict=True)]
    frame = input_.frame.select(*keys, *(field.name for field in input_.columns))
    for name in () if nulls else names:
        frame = frame.where(F.col(name).isNotNull())
    frame = frame.withColumn(HASH_WIRE_COLUMN, F.xxhash64(*names))
    kept = () if exact else tuple(frame.schema[name] for name in names)
    return frame, (*input_.columns, *kept)


_BINDERS: Mapping[str, Callable[..., Wire]] = MappingProxyType(
    {JoinPlan.kind: _bind_join, AggregatePlan.kind: _bind_aggregate, TreePlan.kind: _bind_tree}
)
"""How a plan of each kind becomes a graph of operators over Spark's rows."""
