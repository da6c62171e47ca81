"""Turns a view into its plan by a pipeline of rules; each rule has its own module.

    parse -> scope -> select list, predicates -> equality graph -> shared key: lower (push down) -> join plan
                                                                -> none: shape of the tree -> tree plan

The plan's answer is the view's answer: filters and projections move below the join, equalities over all
inputs become its key, everything else stays above it as the residual predicate. Without a key over all
inputs, where statistics find a tree with less work (`tree_choice`), or where the user gives a tree,
`tree_planner` takes over. `frame_planner` plans a view of one stream with OVER clauses.
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
from spillway.plan.rules.key_terms import blurred_equalities, common_type, input_filter
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.select_list import SelectItem, output_column, read_select_list
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.rules.tree_choice import GIVEN, KEPT, choose_tree, is_one_join
from spillway.plan.rules.tree_planner import plan_tree
from spillway.plan.rules.window_rule import event_time, read_windows, within_windows
from spillway.plan.sql import (
    Predicates,
    Scope,
    conjunction,
    label,
    parse_view,
    read_predicates,
    read_scope,
    source_sql,
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
    select = parse_view(view)
    if is_aggregate_view(select):
        if view.tree is not None:
            raise ViewError("tree: a view of one input has no joins; leave it out")
        return plan_aggregate(view, select, catalog)
    scope = read_scope(select, catalog)
    items = read_select_list(select, scope)
    predicates = read_predicates(select, scope)
    check_connected(predicates, scope)
    graph = equality_graph(predicates)
    shape = kept if view.tree is None else view.tree
    if shape is not None:
        choice = TreeChoice(KEPT if view.tree is None else GIVEN)
        return plan_tree(view, scope, items, predicates, graph, shape, choice)
    key = shared_key(graph, len(scope.inputs))
    chosen = choose_tree(scope, predicates, graph, statistics)
    shape = None if chosen is None or chosen.chosen is None else chosen.chosen.shape
    if key is not None and (shape is None or is_one_join(shape)):
        return plan_join(view, scope, items, predicates, key, chosen)
    return plan_tree(view, scope, items, predicates, graph, shape, chosen)


def plan_join(
    view: View,
    scope: Scope,
    items: tuple[SelectItem, ...],
    predicates: Predicates,
    key: SharedKey,
    choice: TreeChoice | None,
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
        choice=choice,
    )


def _once(nodes: list[exp.Expr]) -> list[exp.Expr]:
    """Each predicate once."""
    return list({label(node): node for node in nodes}.values())
