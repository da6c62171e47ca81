"""From a view to its plan, as a pipeline of rules; each rule is a module of its own.

    parse -> scope -> select list, predicates -> view graph (shared key) -> lower (push down) -> join plan

The plan's answer is the view's answer: filters and projections move below the join, equalities over all
inputs become its key, everything else stays above it as the residual predicate. A view of one stream with
OVER clauses is planned by `aggregate_planner`.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.plan.aggregate_plan import AggregatePlan
from spillway.plan.aggregate_planner import is_aggregate_view, plan_aggregate
from spillway.plan.join_plan import InputPlan, JoinPlan, fingerprint
from spillway.plan.keys import common_key_type
from spillway.plan.lower import Lowering
from spillway.plan.predicates import Predicates, Term, conjunction, read_predicates
from spillway.plan.render import label, source_sql
from spillway.plan.schema import Catalog
from spillway.plan.scope import Scope, read_scope
from spillway.plan.select_list import output_column, read_select_list
from spillway.plan.sql import parse_view
from spillway.plan.state_columns import StateColumns
from spillway.plan.view_graph import KeyPart, SharedKey, shared_key
from spillway.plan.window_rule import event_time, read_windows, within_windows
from spillway.view import View

Plan = JoinPlan | AggregatePlan


def plan_view(view: View, catalog: Catalog) -> Plan:
    """The plan of `view` over the sources of `catalog`; a view that cannot be answered is refused."""
    select = parse_view(view)
    if is_aggregate_view(select):
        return plan_aggregate(view, select, catalog)
    return plan_join(view, select, catalog)


def plan_join(view: View, select: exp.Select, catalog: Catalog) -> JoinPlan:
    """The plan of a view of several inputs."""
    scope = read_scope(select, catalog)
    items = read_select_list(select, scope)
    predicates = read_predicates(select, scope)
    key = shared_key(predicates, scope)
    key_types = tuple(_common_type(part, scope) for part in key.parts)

    columns = StateColumns(scope)
    lowering = Lowering(scope, columns)
    outputs = tuple(output_column(item, lowering) for item in items)
    above = _once([*predicates.residual, *key.residual, *_blurred(key, key_types, scope)])
    residual = lowering.lower_condition(conjunction(above)) if above else None
    windows = read_windows(scope, columns)
    residual = within_windows(windows, residual)

    inputs = tuple(
        InputPlan(
            name=one.alias,
            source=one.source,
            filter=_filter(index, predicates, key, [event_time(one)] if windows else []),
            keys=tuple(source_sql(part.terms[index]) for part in key.parts),
            columns=columns.of(index),
        )
        for index, one in enumerate(scope.inputs)
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


def _filter(index: int, predicates: Predicates, key: SharedKey, present: list[exp.Expr]) -> str | None:
    """The conjunction of what must hold on one input alone, in the order in which it was written."""
    terms: tuple[Term, ...] = (*predicates.filters, *key.filters)
    own = [term.node for term in terms if term.input == index]
    own += [exp.Not(this=exp.Is(this=column, expression=exp.Null())) for column in present]
    return source_sql(conjunction(own)) if own else None


def _once(nodes: list[exp.Expr]) -> list[exp.Expr]:
    """Each predicate once."""
    return list({label(node): node for node in nodes}.values())


def _blurred(key: SharedKey, types: tuple[str | None, ...], scope: Scope) -> list[exp.Expr]:
    """Equalities that the key alone does not decide.

    In a key that mixes integers and floats all are compared as double, and two integers may then look equal
    that are not: an equality that Spark would test in a narrower type is kept as a residual predicate.
    """
    blurred: list[exp.Expr] = []
    for part, common in zip(key.parts, types, strict=True):
        if common != "double":
            continue
        for equality in part.equalities:
            pair = [_typed(side.node, scope) for side in (equality.left, equality.right)]
            known = [one for one in pair if one is not None]
            if len(known) == 2 and common_key_type(known) != common:
                blurred.append(equality.node)
    return blurred


def _common_type(part: KeyPart, scope: Scope) -> str | None:
    """The type of a key part; types that do not fit are refused as far as the catalog tells them."""
    terms = [_typed(term, scope) for term in part.terms]
    known = [term for term in terms if term is not None]
    common = common_key_type(known) if known else None
    return common if len(known) == len(terms) else None


def _typed(node: exp.Expr, scope: Scope) -> tuple[str, str] | None:
    """Label and type of a bare column; only Spark's analysis knows the type of anything else."""
    if not isinstance(node, exp.Column):
        return None
    index = scope.position(node.table)
    column = scope.inputs[index].find(node.name) if index is not None else None
    return None if column is None else (label(node), column.type)
