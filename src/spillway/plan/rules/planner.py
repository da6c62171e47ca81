"""Turns a view into its plan by a pipeline of rules; each rule has its own module.

    parse -> block: inputs, conditions, columns -> equality graph -> shared key: lower -> join plan
                                                                  -> none: shape of the tree -> tree plan

The plan's answer is the view's answer: filters and projections move below the join, equalities over all
inputs become its key, everything else stays above it as the residual predicate. Without a key over all
inputs, where statistics find a tree with less work (`tree_choice`), or where the user gives a tree,
`tree_planner` takes over. `join_block` makes one block of WITH and derived tables. `frame_planner` plans a
view of one stream with OVER clauses.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Catalog, View
from spillway.plan.operators import (
    AggregatePlan,
    InputPlan,
    JoinPlan,
    Shape,
    TreeChoice,
    TreePlan,
    check_join_kind,
    fingerprint,
)
from spillway.plan.rules.equality_graph import SharedKey, check_connected, equality_graph, shared_key
from spillway.plan.rules.frame_planner import is_aggregate_view, plan_aggregate
from spillway.plan.rules.input_statistics import Statistics
from spillway.plan.rules.join_block import JoinBlock, is_flat, read_block
from spillway.plan.rules.key_terms import blurred_equalities, common_type, input_filter
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.result_columns import output_column
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.rules.tree_choice import GIVEN, KEPT, choose_tree, is_one_join
from spillway.plan.rules.tree_planner import plan_tree
from spillway.plan.rules.window_rule import event_time, read_windows, within_windows
from spillway.plan.sql import (
    conjunction,
    flat_select,
    label,
    parse_query,
    source_sql,
    too_deep,
)

Plan = JoinPlan | TreePlan | AggregatePlan


def plan_view(
    view: View, catalog: Catalog, statistics: Statistics | None = None, kept: Shape | None = None
) -> Plan:
    """The plan of `view` over the sources of `catalog`; an unsupported view is refused.

    `kept` is the tree that an earlier plan of the view chose. Without it, `statistics` are asked where there
    is a choice.
    """
    check_join_kind(view.join_kind)
    try:
        return _plan(view, parse_query(view), catalog, statistics, kept)
    except RecursionError:
        raise too_deep("the view") from None


def _plan(
    view: View, statement: exp.Expr, catalog: Catalog, statistics: Statistics | None, kept: Shape | None
) -> Plan:
    if is_flat(statement) and is_aggregate_view(statement):
        if view.tree is not None:
            raise ViewError("tree: a view of one input has no joins; leave it out")
        return plan_aggregate(view, flat_select(statement), catalog)
    block = read_block(statement, catalog)
    check_connected(block.predicates, block.scope)
    graph = equality_graph(block.predicates)
    shape = kept if view.tree is None else view.tree
    if shape is not None:
        choice = TreeChoice(KEPT if view.tree is None else GIVEN)
        return plan_tree(view, block, graph, shape, choice)
    key = shared_key(graph, len(block.scope.inputs))
    chosen = choose_tree(block.scope, block.predicates, graph, statistics)
    shape = None if chosen is None or chosen.chosen is None else chosen.chosen.shape
    if key is not None and (shape is None or is_one_join(shape)):
        return plan_join(view, block, key, chosen)
    return plan_tree(view, block, graph, shape, chosen)


def plan_join(view: View, block: JoinBlock, key: SharedKey, choice: TreeChoice | None) -> JoinPlan:
    """The plan of a view whose inputs share one key."""
    scope, predicates = block.scope, block.predicates
    key_types = tuple(common_type(part.terms, scope) for part in key.parts)

    columns = StateColumns(scope)
    lowering = Lowering(scope, columns)
    outputs = tuple(output_column(item, lowering) for item in block.items)
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
        choice=choice,
    )


def _once(nodes: list[exp.Expr]) -> list[exp.Expr]:
    """Each predicate once."""
    return list({label(node): node for node in nodes}.values())
