"""Plans a view without a key over all inputs as a tree of joins.

Each residual predicate goes to the lowest join that has all its inputs. If some but not all children of a
join have a class of equal terms, and at least two do, the class becomes a residual predicate there. So all
terms of a class are equal inside a child, and any of them represents it further up. This also covers cyclic
join graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spillway.model import View
from spillway.plan.operators import (
    Below,
    InputPlan,
    JoinNode,
    Shape,
    TreeChoice,
    TreePlan,
    partition_classes,
    tree_fingerprint,
)
from spillway.plan.rules.equality_graph import EqualityGraph
from spillway.plan.rules.join_block import JoinBlock
from spillway.plan.rules.join_shape import given_joins, planned_joins
from spillway.plan.rules.key_terms import blurred_equalities, common_type, input_filter
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.result_columns import output_column
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.rules.window_rule import all_of, event_time, read_windows, window_conditions
from spillway.plan.sql import Predicates, Scope, dependencies, label, source_sql


def plan_tree(
    view: View, block: JoinBlock, graph: EqualityGraph, shape: Shape | None, choice: TreeChoice | None
) -> TreePlan:
    """The plan of a view whose inputs are connected, as a tree of this shape, or else as keys are shared."""
    scope, predicates = block.scope, block.predicates
    names = [input_.alias for input_ in scope.inputs]
    key_classes = [
        tuple(number for number, key_class in enumerate(graph.classes) if index in key_class.terms)
        for index in range(len(scope.inputs))
    ]
    leaf_classes = [frozenset(classes) for classes in key_classes]
    joins = planned_joins(names, leaf_classes) if shape is None else given_joins(shape, names, leaf_classes)
    columns = StateColumns(scope)
    lowering = Lowering(scope, columns)
    outputs = tuple(output_column(item, lowering) for item in block.items)
    types = tuple(common_type(list(key_class.terms.values()), scope) for key_class in graph.classes)
    partition = partition_classes(view.join_kind, key_classes)
    skeleton = TreePlan((), tuple(key_classes), joins, outputs, "", partition=partition)
    above = _residuals(skeleton, predicates, graph, types, scope)
    residuals = [[lowering.lower_condition(node) for node in nodes] for nodes in above]
    windows = read_windows(scope, columns)
    if windows:
        for number, join in enumerate(joins):
            residuals[number] += window_conditions(windows, _leaves(skeleton, join))
    joins = tuple(
        replace(join, residual=all_of(of_join)) for join, of_join in zip(joins, residuals, strict=True)
    )
    filters = (*predicates.filters, *(term for _, term in graph.filters))
    inputs = tuple(
        InputPlan(
            name=input_.alias,
            source=input_.source,
            filter=input_filter(index, filters),
            keys=tuple(source_sql(graph.classes[number].terms[index]) for number in key_classes[index]),
            columns=columns.of(index),
            times=(source_sql(event_time(input_)),) if windows else (),
        )
        for index, input_ in enumerate(scope.inputs)
    )
    return replace(
        skeleton,
        inputs=inputs,
        joins=joins,
        fingerprint=tree_fingerprint(inputs, tuple(key_classes), joins, outputs, windows, partition),
        key_labels=tuple(
            tuple(label(node) for node in key_class.terms.values()) for key_class in graph.classes
        ),
        key_types=types,
        windows=windows,
        view=" ".join(view.text.split()),
        choice=choice,
    )


def _leaves(plan: TreePlan, join: JoinNode) -> tuple[int, ...]:
    return tuple(sorted(leaf for child in join.children for leaf in plan.leaves(child)))


def _residuals(
    plan: TreePlan,
    predicates: Predicates,
    graph: EqualityGraph,
    types: Sequence[str | None],
    scope: Scope,
) -> list[list[exp.Expr]]:
    """Per join, the predicates to test there, each once."""
    found: list[dict[str, exp.Expr]] = [{} for _ in plan.joins]
    written = [*predicates.residual]
    for key_class, kind in zip(graph.classes, types, strict=True):
        written += blurred_equalities(key_class.equalities, kind, scope)
    for node in written:
        needed = set(dependencies(node, scope))
        lowest = next(
            number for number in range(len(plan.joins)) if needed <= set(plan.leaves(Below(number)))
        )
        found[lowest].setdefault(label(node), node)
    for number, join in enumerate(plan.joins):
        for class_number, key_class in enumerate(graph.classes):
            if class_number in join.classes:
                continue
            having = [
                child
                for child in join.children
                if any(class_number in plan.key_classes[leaf] for leaf in plan.leaves(child))
            ]
            terms = [key_class.terms[plan.representative(child, class_number)] for child in having]
            for other in terms[1:]:
                equal = exp.EQ(this=terms[0].copy(), expression=other.copy())
                found[number].setdefault(label(equal), equal)
    return [list(of_join.values()) for of_join in found]
