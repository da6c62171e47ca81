"""The meaning of windows: event times become state columns, and a residual predicate compares them.

A result exists iff, for every input with a range, the youngest of its rows is at most the range younger than
the row of that input. "Youngest" is over all inputs, so each needs an event time, with a range or without.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Window
from spillway.plan.expression import Call, ColumnRef, Expression, Literal
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.sql import Input, Scope


def read_windows(scope: Scope, columns: StateColumns) -> tuple[Window, ...]:
    """The windows of all inputs, with their event times as state columns; none if no input has a range."""
    ranged = [input_ for input_ in scope.inputs if input_.range_us is not None]
    if not ranged:
        return ()
    windows = []
    for index, input_ in enumerate(scope.inputs):
        column = input_.event_time
        if column is None or column.lateness_us is None:
            why = (
                "has a window"
                if input_.range_us is not None
                else f"is joined with a window of {ranged[0].alias}"
            )
            raise ViewError(
                f"{input_.alias} {why}, but source {input_.source} has no event time; "
                f"give [sources.{input_.source}] "
                'event_time = "column" and lateness = "10 seconds", or use withWatermark on the DataFrame'
            )
        ref = columns.add(index, microseconds(input_))
        windows.append(Window(ref.column, input_.range_us, column.lateness_us))
    return tuple(windows)


def within_windows(windows: Sequence[Window], residual: Expression | None) -> Expression | None:
    """The residual predicate with the condition that the windows stand for."""
    own = [] if residual is None else [residual]
    return all_of([*own, *window_conditions(windows, range(len(windows)))])


def window_conditions(windows: Sequence[Window], inputs: Sequence[int]) -> list[Expression]:
    """What the windows ask of joined rows of these inputs: each is young enough for the youngest."""
    times = {index: ColumnRef(index, windows[index].column) for index in inputs}
    youngest = Call("greatest", tuple(times.values()))
    return [
        Call("<=", (Call("-", (youngest, time)), Literal(reach, "bigint")))
        for index, time in times.items()
        if (reach := windows[index].range_us) is not None
    ]


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """Their conjunction; None if there are none."""
    if not conditions:
        return None
    return reduce(lambda left, right: Call("and", (left, right)), conditions)


def event_time(input_: Input) -> exp.Expr:
    """The event time of an input as its source has it."""
    assert input_.event_time is not None
    return exp.column(input_.event_time.name, table=input_.alias, quoted=True)


def microseconds(input_: Input) -> exp.Expr:
    """The event time in microseconds, independent of the session's time zone."""
    assert input_.event_time is not None
    column = event_time(input_)
    if input_.event_time.type == "timestamp":
        return exp.Anonymous(this="unix_micros", expressions=[column])
    if input_.event_time.type == "timestamp_ntz":
        epoch = exp.cast(exp.Literal.string("1970-01-01 00:00:00"), "timestamp_ntz", dialect="spark")
        unit = exp.Var(this="MICROSECOND")
        return exp.Anonymous(this="timestampdiff", expressions=[unit, epoch, column])
    raise ViewError(
        f"the event time {input_.alias}.{input_.event_time.name} is {input_.event_time.type}; "
        "it must be a timestamp: declare it as one in the schema of the source, or name another column"
    )
