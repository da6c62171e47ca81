"""The stateless prefix of an epoch: each input filtered, projected and hashed by Spark, all in one stream.

Inputs have different columns, but one shuffle carries them all: a wire row has a tag (which input), the key
hash, and slots that inputs share by type (`wire_slots`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from spillway.plan.expression import STATISTICS, ColumnRef, Expression
from spillway.plan.operators import AggregatePlan, JoinPlan, TreePlan
from spillway.plan.rules import Plan
from spillway.plan.typing import PlanTypes, plan_types
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
    types: PlanTypes


def bind(plan: Plan, sources: Mapping[str, DataFrame], groups: int) -> Wire:
    """Resolve the plan's expressions against the sources' DataFrames."""
    inputs = [typed_input(input_, sources[input_.source]) for input_ in plan.inputs]
    types = plan_types(plan, [input_.types for input_ in inputs])
    stream, graph, fields = _BINDERS[plan.kind](plan, inputs, types, groups)
    state_types = tuple(tuple(field.dataType.simpleString() for field in columns) for columns in fields)
    return Wire(stream, graph, types.schema, state_types, types)


_Fields = Sequence[tuple[StructField, ...]]
"""Per input, its columns in state."""


def _bind_join(
    plan: JoinPlan, inputs: Sequence[TypedInput], types: PlanTypes, groups: int
) -> tuple[DataFrame, Graph, _Fields]:
    (exact,) = types.exact
    keyed = [_with_keys(input_, types.keys, exact) for input_ in inputs]
    fields = [columns for _, columns in keyed]
    slots = shared_slots(fields)
    stream = None
    wire_inputs = []
    for number, (frame, columns) in enumerate(keyed):
        names = assigned_slots(columns, slots)
        own = len(plan.inputs[number].columns)
        labels = [plan.column_label(ColumnRef(number, place)) for place in range(own)]
        keys = tuple(field.name for field in columns[own:])
        wire_inputs.append(
            WireInput(
                plan.inputs[number].name, tuple(field.name for field in columns), names, (*labels, *keys)
            )
        )
        rows = wired(frame, number, columns, names, slots)
        stream = rows if stream is None else stream.union(rows)
    assert stream is not None
    key_columns = tuple(
        () if exact else tuple(range(len(columns) - len(types.keys), len(columns))) for columns in fields
    )
    operator = JoinOperator(
        inputs=tuple(wire_inputs),
        outputs=tuple(output.value for output in plan.outputs),
        residual=plan.residual,
        key_columns=key_columns,
        groups=groups,
        result_schema=types.schema,
        windows=plan.windows,
    )
    return stream, Graph.of_one(operator), fields


def _bind_aggregate(
    plan: AggregatePlan, inputs: Sequence[TypedInput], types: PlanTypes, groups: int
) -> tuple[DataFrame, Graph, _Fields]:
    frame, columns = _with_keys(inputs[0], types.keys, exact=False, nulls=True)
    kept, keys = plan.kept, len(types.keys)
    fields = (*columns[:kept], *columns[-keys:], *columns[kept:-keys])
    slots = shared_slots([fields])
    names = assigned_slots(fields, slots)

    def moved(value: Expression) -> Expression:
        """Columns that wait with their row come after the keys."""
        if isinstance(value, ColumnRef) and value.input == 0 and value.column >= kept:
            return ColumnRef(0, value.column + keys)
        return value

    operator = FrameOperator(
        inputs=(WireInput(plan.input.name, tuple(field.name for field in fields), names),),
        outputs=tuple(moved(output.value) for output in plan.outputs),
        statistics=plan.statistics,
        key_columns=tuple(range(kept, kept + keys)),
        time=plan.time,
        order=plan.order,
        kept=kept + keys,
        lateness_us=plan.lateness_us,
        groups=groups,
        result_schema=types.schema,
        statistic_labels=tuple(
            plan.column_label(ColumnRef(STATISTICS, number)) for number in range(len(plan.statistics))
        ),
    )
    return wired(frame, 0, fields, names, slots), Graph.of_one(operator), [fields]


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


_BINDERS: Mapping[str, Callable[..., tuple[DataFrame, Graph, _Fields]]] = MappingProxyType(
    {JoinPlan.kind: _bind_join, AggregatePlan.kind: _bind_aggregate, TreePlan.kind: bind_tree_plan}
)
"""How a plan of each kind becomes a graph of operators over Spark's rows."""
