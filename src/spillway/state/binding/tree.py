"""From a tree plan and the types of its columns to the operator that workers run."""

from collections.abc import Sequence

import pyarrow as pa

from spillway.plan.expression import ColumnRef
from spillway.plan.operators import (
    Below,
    Grid,
    GroupNumber,
    InputLayout,
    KeyHash,
    KeyValue,
    Leaf,
    LeafColumn,
    OperatorLayout,
    Symbol,
    TreePlan,
    layout,
)
from spillway.plan.typing import LeafType, symbol_type, tree_output_types
from spillway.state.graph import Graph, OperatorEdge, Root
from spillway.state.join import JoinOperator
from spillway.state.step import Lineage, WireInput


def bind_tree(
    plan: TreePlan,
    exact: Sequence[bool],
    leaf_type: LeafType,
    leaf_slots: Sequence[tuple[str, ...]],
    groups: int,
) -> Graph:
    """`leaf_slots` says of each leaf where on the wire the columns lie that `leaf_symbols` names."""
    layouts = layout(plan, exact)
    outputs = [output.name for output in plan.outputs]
    types = tree_output_types(plan, layouts, leaf_type)
    results = pa.schema(list(zip(outputs, types, strict=True)))
    joins = tuple(
        _join(plan, number, layouts, results, leaf_type, leaf_slots, groups) for number in range(len(layouts))
    )
    tags: dict[int, tuple[int, int]] = {}
    for number, join in enumerate(plan.joins):
        for position, child in enumerate(join.children):
            if isinstance(child, Leaf):
                tags[child.number] = (number, position)
    counted = None
    if plan.partition:
        grid = Grid.of(plan.partition, groups)
        counted = tuple(grid.first_copies(classes) for classes in plan.key_classes)
    return Graph(
        joins,
        tuple(tags[leaf] for leaf in range(len(plan.inputs))),
        edges=tuple(_edge(plan, number, layouts) for number in range(len(joins) - 1)),
        roots=(Root(len(joins) - 1),),
        counted=counted,
    )


def symbol_name(symbol: Symbol) -> str:
    """The name of a column in state."""
    if isinstance(symbol, LeafColumn):
        return f"c{symbol.leaf}_{symbol.column}"
    if isinstance(symbol, KeyHash):
        return f"h{symbol.leaf}_{symbol.key_class}"
    if isinstance(symbol, KeyValue):
        return f"k{symbol.leaf}_{symbol.key_class}"
    return f"g{symbol.join}" if isinstance(symbol, GroupNumber) else f"d{symbol.join}"


def _join(
    plan: TreePlan,
    number: int,
    layouts: Sequence[OperatorLayout],
    results: pa.Schema,
    leaf_type: LeafType,
    leaf_slots: Sequence[tuple[str, ...]],
    groups: int,
) -> JoinOperator:
    own = layouts[number]
    schema = results
    if plan.parent(number) is not None:
        downstream = _downstream(plan, number, layouts)
        passed = (*downstream.hashes, *downstream.columns[:-1])
        schema = pa.schema([(f"o{n}", symbol_type(symbol, leaf_type)) for n, symbol in enumerate(passed)])
    return JoinOperator(
        inputs=tuple(_input(plan, of_child, leaf_slots) for of_child in own.inputs),
        outputs=own.outputs,
        residual=own.residual,
        key_columns=tuple(of_child.key_columns for of_child in own.inputs),
        groups=groups,
        result_schema=schema,
        windows=own.windows,
        lineage=tuple(Lineage(below * groups, groups, column) for below, column in own.lineage),
    )


def _edge(plan: TreePlan, number: int, layouts: Sequence[OperatorLayout]) -> OperatorEdge:
    """From a join that is not the root of its tree to its parent."""
    parent = plan.parent(number)
    assert parent is not None
    position = plan.joins[parent].children.index(Below(number))
    hashes = len(_downstream(plan, number, layouts).hashes)
    return OperatorEdge(number, parent, position, hashes, keeps_group=bool(plan.partition), traced=True)


def _downstream(plan: TreePlan, number: int, layouts: Sequence[OperatorLayout]) -> InputLayout:
    """The input of the parent that takes a join's results."""
    parent = plan.parent(number)
    assert parent is not None
    return layouts[parent].inputs[plan.joins[parent].children.index(Below(number))]


def _input(plan: TreePlan, input_: InputLayout, leaf_slots: Sequence[tuple[str, ...]]) -> WireInput:
    names = tuple(symbol_name(symbol) for symbol in input_.columns)
    labels = tuple(_label(plan, symbol) for symbol in input_.columns)
    if isinstance(input_.child, Leaf):
        leaf = input_.child.number
        return WireInput(plan.inputs[leaf].name, names, leaf_slots[leaf], labels)
    return WireInput(f"join {input_.child.number + 1}", names, names, labels)


def _label(plan: TreePlan, symbol: Symbol) -> str:
    """What the user calls a column; only columns of leaves are in expressions of the user."""
    if isinstance(symbol, LeafColumn):
        return plan.column_label(ColumnRef(symbol.leaf, symbol.column))
    return symbol_name(symbol)
