"""Plans a view of one stream with OVER clauses.

All statistics of a view share the key and the order, so one state serves them all; frames may differ. A time
frame depends on the event time alone; a row frame needs the whole order.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Catalog, Statistic, View
from spillway.plan.expression import STATISTICS, ColumnRef, arrow_type, check_order, statistic_type
from spillway.plan.operators import (
    AggregatePlan,
    InputPlan,
    OutputColumn,
    aggregate_fingerprint,
    common_key_type,
)
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.result_columns import output_column
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.rules.window_rule import event_time, microseconds
from spillway.plan.sql import (
    Input,
    Over,
    Scope,
    SelectItem,
    conjunction,
    distinct_names,
    label,
    quote,
    read_items,
    read_over,
    read_predicates,
    read_scope,
    source_sql,
    unsupported,
)


def is_aggregate_view(select: exp.Expr) -> bool:
    """Whether the view asks for statistics over one stream."""
    return not select.args.get("joins") and any(item.find(exp.Window) for item in select.expressions)


def plan_aggregate(view: View, select: exp.Select, catalog: Catalog) -> AggregatePlan:
    """The plan of `select`; unsupported views are refused."""
    scope = read_scope(select, catalog, alone=True)
    stream = _one_stream(scope)
    items = _read_items(select, scope)
    overs = _shared([item for item in items if isinstance(item, _OverItem)], stream)
    columns = StateColumns(scope)
    time = columns.add(0, microseconds(stream)).column
    by = max((over.order for over in overs), key=len)
    order = tuple(_ordered(node, columns) for node in by)
    statistics = tuple(_statistic(over, columns) for over in overs)
    kept = columns.sizes()[0]
    outputs = _outputs(items, Lowering(scope, columns))
    filters = [term.node for term in read_predicates(select, scope).filters]
    input_ = InputPlan(
        name=stream.alias,
        source=stream.source,
        filter=source_sql(conjunction(filters)) if filters else None,
        keys=tuple(source_sql(node) for node in overs[0].keys),
        columns=columns.of(0),
        times=(source_sql(event_time(stream)), *(source_sql(node) for node in by)),
    )
    column = stream.event_time
    assert column is not None
    assert column.lateness_us is not None
    return AggregatePlan(
        input=input_,
        outputs=outputs,
        statistics=statistics,
        time=time,
        order=order,
        kept=kept,
        lateness_us=column.lateness_us,
        fingerprint=aggregate_fingerprint(input_, outputs, statistics, order),
        key_labels=tuple((label(node),) for node in overs[0].keys),
        key_types=tuple(_key_type(node, stream) for node in overs[0].keys),
        view=" ".join(view.text.split()),
    )


class _OverItem:
    """A column of the result that is a statistic."""

    __slots__ = ("name", "node", "over")

    def __init__(self, name: str, window: exp.Window, scope: Scope) -> None:
        self.name = name
        self.node: exp.Expr = window
        self.over = read_over(window, scope)


def _read_items(select: exp.Select, scope: Scope) -> list[SelectItem | _OverItem]:
    items: list[SelectItem | _OverItem] = []
    for node in select.expressions:
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Window):
            items.append(_OverItem(node.alias if inner is not node else label(inner), inner, scope))
        elif (window := node.find(exp.Window)) is not None:
            raise unsupported("OVER inside an expression", window, "select it as a column of its own")
        else:
            items += read_items(node, scope)
    distinct_names(items, scope)
    return items


def _one_stream(scope: Scope) -> Input:
    input_ = scope.inputs[0]
    if input_.range_us is not None:
        raise ViewError(f"{input_.alias} has both a window in FROM and frames in OVER; keep one of them")
    if input_.event_time is None:
        raise ViewError(
            f"OVER needs an event time, but source {input_.source} has none; give [sources.{input_.source}] "
            'event_time = "column" and lateness = "10 seconds", or use withWatermark on the DataFrame'
        )
    return input_


def _shared(items: list[_OverItem], input_: Input) -> list[Over]:
    """The clauses, all of one key and order."""
    overs = [item.over for item in items]
    longest = max((over.order for over in overs), key=len)
    for item in items:
        over = item.over
        if label(over.time) != label(event_time(input_)):
            raise ViewError(
                f"ORDER BY begins with {label(over.time)}, but the event time of {input_.source} is "
                f"{label(event_time(input_))}: {quote(item.node)}; order by it first"
            )
        if [label(key) for key in over.keys] != [label(key) for key in overs[0].keys]:
            raise unsupported("another PARTITION BY in the same view", item.node, "run one view per key")
        if (over.order or over.frame.kind == "rows") and over.order != longest:
            raise unsupported("another ORDER BY in the same view", item.node, "run one view per order")
    return overs


def _ordered(node: exp.Expr, columns: StateColumns) -> int:
    ref = columns.add(0, node)
    kind = columns.type(ref)
    if kind is not None:
        check_order(label(node), _known(kind, node))
    return ref.column


def _statistic(over: Over, columns: StateColumns) -> Statistic:
    if over.argument is None:
        return Statistic(over.function, None, over.frame)
    ref = columns.add(0, over.argument)
    kind = columns.type(ref)
    if kind is not None and over.function != "count":
        try:
            statistic_type(over.function, _known(kind, over.argument))
        except ViewError as error:
            raise ViewError(f"{error}: {over.text}") from None
    return Statistic(over.function, ref.column, over.frame)


def _known(kind: str, node: exp.Expr) -> object:
    found = arrow_type(kind)
    if found is None:
        raise ViewError(f"{label(node)} is {kind}, which has no order and no sum; name a plain value of it")
    return found


def _outputs(items: list[SelectItem | _OverItem], lowering: Lowering) -> tuple[OutputColumn, ...]:
    outputs = []
    number = 0
    for item in items:
        if isinstance(item, _OverItem):
            outputs.append(OutputColumn(item.name, ColumnRef(STATISTICS, number)))
            number += 1
        else:
            outputs.append(output_column(item, lowering))
    return tuple(outputs)


def _key_type(node: exp.Expr, input_: Input) -> str | None:
    column = input_.find(node.name) if isinstance(node, exp.Column) else None
    return None if column is None else common_key_type([(label(node), column.type)])
