"""Types inside a tree of joins: what joins pass on, and the view's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from spillway.errors import ViewError
from spillway.plan.expression import (
    ColumnRef,
    Expression,
    Labels,
    arrow_type,
    describe,
    result_type,
    spark_type,
)
from spillway.plan.operators import GroupNumber, KeyValue, LeafColumn, OperatorLayout, Symbol, TreePlan
from spillway.plan.typing.column import InputTypes

LeafType = Callable[[LeafColumn | KeyValue], pa.DataType]
TypeOf = Callable[[ColumnRef], pa.DataType]


def leaf_types(inputs: Sequence[InputTypes], key_types: Sequence[str]) -> LeafType:
    """The types of columns of the inputs; keys have the type in which their class is compared."""

    def type_of(symbol: LeafColumn | KeyValue) -> pa.DataType:
        if isinstance(symbol, LeafColumn):
            return inputs[symbol.leaf].columns[symbol.column].arrow
        return arrow_type(key_types[symbol.key_class])

    return type_of


def symbol_type(symbol: Symbol, leaf_type: LeafType) -> pa.DataType:
    if isinstance(symbol, LeafColumn | KeyValue):
        return leaf_type(symbol)
    return pa.uint16() if isinstance(symbol, GroupNumber) else pa.int64()


def tree_output_types(
    plan: TreePlan, layouts: Sequence[OperatorLayout], leaf_type: LeafType
) -> tuple[pa.DataType, ...]:
    """The types of the view's results; a join condition that is not boolean is refused."""
    outputs: tuple[pa.DataType, ...] = ()
    for number, own in enumerate(layouts):

        def type_of(ref: ColumnRef, own: OperatorLayout = own) -> pa.DataType:
            return symbol_type(own.inputs[ref.input].columns[ref.column], leaf_type)

        def label(ref: ColumnRef, own: OperatorLayout = own, number: int = number) -> str:
            symbol = own.inputs[ref.input].columns[ref.column]
            if isinstance(symbol, LeafColumn):
                return plan.column_label(ColumnRef(symbol.leaf, symbol.column))
            return f"join {number + 1}"

        if plan.parent(number) is None:
            outputs = tuple(value_type(value, type_of, label) for value in own.outputs)
        check_condition(own.residual, type_of, label)
    return outputs


def value_type(value: Expression, type_of: TypeOf, label: Labels) -> pa.DataType:
    return type_of(value) if isinstance(value, ColumnRef) else result_type(value, type_of, label)


def check_condition(residual: Expression | None, type_of: TypeOf, label: Labels) -> None:
    """Refuse a residual predicate that is not a predicate."""
    if residual is None:
        return
    kind = value_type(residual, type_of, label)
    if not pa.types.is_boolean(kind):
        shown = describe(residual, label)
        raise ViewError(f"the condition {shown} is {spark_type(kind)}, not boolean; write a comparison")
