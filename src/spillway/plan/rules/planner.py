"""Turns a view into its plan by a pipeline of rules; each rule has its own module.

    parse -> block: inputs, conditions, columns -> equality graph -> shared key: lower -> join plan
                                                                  -> none: shape of the tree -> tree plan

The plan's answer is the view's answer: filters and projections move below the join, equalities over all
inputs become its key, everything else stays above it as the residual predicate. Without a key over all
inputs, or where the user gives a tree, `tree_planner` takes over. `join_block` makes one block of WITH and
derived tables. `frame_planner` plans a view of one stream with OVER clauses.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Catalog, View
from spillway.plan.operators import AggregatePlan, InputPlan, JoinPlan, TreePlan, check_join_kind, fingerprint
from spillway.plan.rules.equality_graph import SharedKey, check_connected, equality_graph, shared_key
from spillway.plan.rules.frame_planner import is_aggregate_view, plan_aggregate
from spillway.plan.rules.join_block import is_flat, read_block
from spillway.plan.rules.key_terms import blurred_equalities, common_type, input_filter
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.result_columns import output_column
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.rules.tree_planner import plan_tree
from spillway.plan.rules.window_rule import event_time, read_windows, within_windows
from spillway.plan.sql import (
    Predicates,
    Scope,
    SelectItem,
    conjunction,
    flat_select,
    label,
    parse_query,
    source_sql,
    too_deep,
)

Plan = JoinPlan | TreePlan | AggregatePlan


def plan_view(view: View, catalog: Catalog) -> Plan:
    """The plan of `view` over the sources of `catalog`; an unsupported view is refused."""
    check_join_kind(view.join_kind)
    try:
        return _plan(view, parse_query(view), catalog)
    except RecursionError:
        raise too_deep("the view") from None


def _plan(view: View, statement: exp.Expr, catalog: Catalog) -> Plan:
    if is_flat(statement) and is_aggregate_view(statement):
        if view.tree is not None:
            raise ViewError("tree: a view of one input has no joins; leave it out")
        return plan_aggregate(view, flat_select(statement), catalog)
    block = read_block(statement, catalog)
    check_connected(block.predicates, block.scope)
    graph = equality_graph(block.predicates)
    key = shared_key(graph, len(block.scope.inputs)) if view.tree is None else None
    if key is None:
        return plan_tree(view, block.scope, block.items, block.predicates, graph)
    return plan_join(view, block.scope, block.items, block.predicates, key)


def plan_join(
    view: View, scope: Scope, items: tuple[SelectItem, ...], predicates: Predicates, key: SharedKey
) -> JoinPlan:
    """The plan of a view whose inputs share one key."""
    key_types = tuple(common_type(part.terms, scope) for part in key.parts)

    columns = StateColumns(scope)
    lowering = Lowering(scope, columns)
    outputs = tuple(output_column(item, lowering) for item in items)
    blurred = [
        node
        for part, kind in zip(key.parts, key_types, strict=True)
        for node in blurred_equalities(part.equalities, kind, scope)
    ]
    above = _once([*predicates.residual, *key.residual, *blurred])
    residual = lowering.lower_condition(conjunction(above)) if above else None
    windows = read_windows(scope, columns)
    residual = within_windows(windows, residual)

    inputs = tuple(
        InputPlan(
            name=input_.alias,
            source=input_.source,
            filter=input_filter(index, (*predicates.filters, *key.filters)),
            keys=tuple(source_sql(part.terms[index]) for part in key.parts),
            columns=columns.of(index),
            times=(source_sql(event_time(input_)),) if windows else (),
        )
        for index, input_ in enumerate(scope.inputs)
    )
    return JoinPlan(
        inputs=inputs,
        outputs=outputs,
        residual=residual,
        fingerprint=fingerprint(inputs, outputs, residual, windows),
        key_labels=tuple(tuple(label(term) for term in part.terms) for part in key.parts),
        key_types=key_types,
        windows=windows,
        view=" ".join(view.text.split()),
    )


def _once(nodes: list[exp.Expr]) -> list[exp.Expr]:
    """Each predicate once."""
    return list({label(node): node for node in nodes}.values())
