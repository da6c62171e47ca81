"""The types of a plan, from those of its inputs: of keys, of statistics, of results.

A plan whose types do not fit is refused here, and only here. The kind of a plan decides its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from spillway.errors import ViewError
from spillway.plan.expression import STATISTICS, ColumnRef, check_order, statistic_type
from spillway.plan.operators import AggregatePlan, JoinPlan, TreePlan, common_key_type, hash_is_exact, layout
from spillway.plan.rules import Plan
from spillway.plan.typing.column import InputTypes, check_carried
from spillway.plan.typing.tree import check_condition, leaf_types, tree_output_types, value_type


@dataclass(frozen=True, slots=True)
class PlanTypes:
    """All types of a plan that fit."""

    inputs: tuple[InputTypes, ...]
    keys: tuple[str, ...]
    """Per part of the key, or class of equal terms in a tree: the Spark type in which it is compared."""
    exact: tuple[bool, ...]
    """Per join, whether equal hashes mean equal keys."""
    schema: pa.Schema
    """Of the result."""

    def columns(self) -> dict[ColumnRef, str]:
        """The Spark types of all state columns."""
        return {
            ColumnRef(number, position): column.spark
            for number, input_ in enumerate(self.inputs)
            for position, column in enumerate(input_.columns)
        }


def plan_types(plan: Plan, inputs: Sequence[InputTypes]) -> PlanTypes:
    """The types of `plan` over inputs of these types; refused if they do not fit."""
    for input_, types in zip(plan.inputs, inputs, strict=True):
        check_carried(input_, types)
    keys, exact, outputs = _RULES[plan.kind](plan, inputs)
    names = [output.name for output in plan.outputs]
    return PlanTypes(tuple(inputs), keys, exact, pa.schema(list(zip(names, outputs, strict=True))))


_Types = tuple[tuple[str, ...], tuple[bool, ...], tuple[pa.DataType, ...]]


def _join(plan: JoinPlan, inputs: Sequence[InputTypes]) -> _Types:
    keys = tuple(
        common_key_type(
            [(labels[number], types.keys[part]) for number, types in enumerate(inputs)],
        )
        for part, labels in enumerate(plan.key_labels)
    )

    def type_of(ref: ColumnRef) -> pa.DataType:
        return inputs[ref.input].columns[ref.column].arrow

    outputs = tuple(value_type(output.value, type_of, plan.column_label) for output in plan.outputs)
    check_condition(plan.residual, type_of, plan.column_label)
    return keys, (hash_is_exact(keys),), outputs


def _aggregate(plan: AggregatePlan, inputs: Sequence[InputTypes]) -> _Types:
    """Keys are always kept: a null key is one too, and no hash of 64 bits is left for it."""
    (types,) = inputs
    labels = [label for (label,) in plan.key_labels]
    keys = tuple(common_key_type([term]) for term in zip(labels, types.keys, strict=True))
    for column in plan.order:
        check_order(plan.column_label(ColumnRef(0, column)), types.columns[column].arrow)

    def type_of(ref: ColumnRef) -> pa.DataType:
        if ref.input == 0:
            return types.columns[ref.column].arrow
        statistic = plan.statistics[ref.column]
        argument = statistic.argument
        return statistic_type(statistic.function, None if argument is None else types.columns[argument].arrow)

    for number in range(len(plan.statistics)):
        ref = ColumnRef(STATISTICS, number)
        try:
            type_of(ref)
        except ViewError as error:
            raise ViewError(f"{error} (in {plan.column_label(ref)})") from None
    outputs = tuple(value_type(output.value, type_of, plan.column_label) for output in plan.outputs)
    return keys, (False,), outputs


def _tree(plan: TreePlan, inputs: Sequence[InputTypes]) -> _Types:
    keys = tuple(_class_type(plan, number, inputs) for number in range(len(plan.key_labels)))
    exact = tuple(
        not plan.partition and hash_is_exact([keys[number] for number in join.classes]) for join in plan.joins
    )
    return keys, exact, tree_output_types(plan, layout(plan, exact), leaf_types(inputs, keys))


def _class_type(plan: TreePlan, key_class: int, inputs: Sequence[InputTypes]) -> str:
    """The type in which a class of equal terms is compared."""
    terms = []
    for input_, classes, types in zip(plan.inputs, plan.key_classes, inputs, strict=True):
        if key_class in classes:
            position = classes.index(key_class)
            label = f"{input_.name}: {input_.keys[position].replace('`', '')}"
            terms.append((label, types.keys[position]))
    return common_key_type(terms)


_RULES: Mapping[str, Callable[..., _Types]] = MappingProxyType(
    {JoinPlan.kind: _join, AggregatePlan.kind: _aggregate, TreePlan.kind: _tree}
)
"""By kind of plan: the types of its keys, which hashes are exact, and the types of its results."""
