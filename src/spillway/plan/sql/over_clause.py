"""Reads `OVER (PARTITION BY ... ORDER BY ... ROWS | RANGE BETWEEN ... PRECEDING AND CURRENT ROW)`.

A part of the clause that no rule below knows is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Frame, Function
from spillway.plan.sql.refusals import unsupported
from spillway.plan.sql.render import label, quote
from spillway.plan.sql.resolution import resolve
from spillway.plan.sql.scope import Scope
from spillway.plan.sql.window_clause import interval_us

_FUNCTIONS = {
    "count": "count", "sum": "sum", "avg": "avg", "mean": "avg", "min": "min", "max": "max",
    "stddev": "stddev", "stddev_samp": "stddev", "std": "stddev",
}  # fmt: skip
_WINDOW_PARTS = frozenset({"this", "partition_by", "order", "spec", "over"})
_SPEC_PARTS = frozenset({"kind", "start", "start_side", "end", "end_side"})
_EXAMPLE = "write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or RANGE BETWEEN INTERVAL 30 SECONDS PRECEDING"
_MOST_ROWS = 1 << 31


@dataclass(frozen=True, slots=True)
class Over:
    """One statistic as the view asks for it, its names resolved."""

    function: Function
    argument: exp.Expr | None
    keys: tuple[exp.Expr, ...]
    time: exp.Expr
    order: tuple[exp.Expr, ...]
    """What comes after the event time in ORDER BY."""
    frame: Frame
    text: str


def read_over(window: exp.Window, scope: Scope) -> Over:
    """The clause of one statistic; everything that is not supported is refused."""
    for part, value in window.args.items():
        if value and part not in _WINDOW_PARTS:
            name = "a named window" if part == "alias" else part.strip("_").upper()
            raise unsupported(name, window, "write the clause out: OVER (PARTITION BY ... ORDER BY ...)")
    function, argument = _read_function(window, scope)
    keys = tuple(resolve(node, scope) for node in window.args.get("partition_by") or ())
    if not keys:
        raise unsupported("OVER without PARTITION BY", window, "name the columns of the key")
    first, *others = _read_order(window, scope)
    frame = _read_frame(window)
    if frame.kind == "rows" and not others:
        raise ViewError(
            f"ROWS needs a total order, but {label(first)} alone may have ties: {quote(window)}; "
            f"add a column that tells rows of one time apart: ORDER BY {label(first)}, id"
        )
    return Over(function, argument, keys, first, tuple(others), frame, quote(window))


def _read_function(window: exp.Window, scope: Scope) -> tuple[Function, exp.Expr | None]:
    call = window.this
    if isinstance(call, exp.Filter):
        raise unsupported("FILTER", call, "write the condition as CASE WHEN in the argument")
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        raise unsupported("IGNORE NULLS", call, "statistics ignore nulls anyway")
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
    if name not in _FUNCTIONS:
        raise unsupported("this window function", call, "use count, sum, avg, min, max or stddev")
    arguments = call.expressions
    if any(isinstance(argument, exp.Distinct) for argument in arguments):
        raise unsupported("DISTINCT", call, "statistics are over all rows of a frame")
    if len(arguments) != 1:
        raise ViewError(f"{quote(call)} has {len(arguments)} arguments; a statistic has one")
    argument = arguments[0]
    if name == "count" and isinstance(argument, exp.Star | exp.Literal):
        return "count", None
    return cast("Function", _FUNCTIONS[name]), resolve(argument, scope)


def _read_order(window: exp.Window, scope: Scope) -> list[exp.Expr]:
    order = window.args.get("order")
    if order is None:
        raise unsupported("OVER without ORDER BY", window, "order by the event time")
    columns = []
    for item in order.expressions:
        if item.args.get("desc"):
            raise unsupported("DESC", item, "frames go from earlier rows to later ones")
        if not item.args.get("nulls_first"):
            raise unsupported("NULLS LAST", item, "nulls come first, as in Spark")
        if item.args.get("with_fill"):
            raise unsupported("WITH FILL", item, "remove it")
        columns.append(resolve(item.this, scope))
    return columns


def _read_frame(window: exp.Window) -> Frame:
    spec = window.args.get("spec")
    if spec is None:
        raise unsupported("OVER without a frame", window, f"it would keep all rows forever; {_EXAMPLE}")
    for part, value in spec.args.items():
        if value and part not in _SPEC_PARTS:
            raise unsupported(part.upper(), window, "remove it")
    kind, start, side = (spec.args.get(part) for part in ("kind", "start", "start_side"))
    end, end_side = spec.args.get("end"), spec.args.get("end_side")
    if kind not in ("ROWS", "RANGE"):
        raise unsupported(str(kind), window, _EXAMPLE)
    if "FOLLOWING" in (side, end_side):
        raise unsupported("FOLLOWING", window, "a frame ends at CURRENT ROW")
    if end not in (None, "CURRENT ROW"):
        raise unsupported("a frame that ends before CURRENT ROW", window, "end it at CURRENT ROW")
    if start == "UNBOUNDED":
        raise unsupported("UNBOUNDED PRECEDING", window, f"it would keep all rows forever; {_EXAMPLE}")
    if start == "CURRENT ROW":
        return Frame("rows" if kind == "ROWS" else "range", 0)
    if kind == "RANGE":
        if not isinstance(start, exp.Interval):
            raise ViewError(f"RANGE goes by time: {quote(window)}; write RANGE BETWEEN INTERVAL 30 SECONDS")
        return Frame("range", interval_us(start))
    if not isinstance(start, exp.Literal) or start.is_string or not str(start.this).isdigit():
        raise ViewError(f"ROWS takes a whole number: {quote(window)}; {_EXAMPLE}")
    if int(start.this) >= _MOST_ROWS:
        raise ViewError(f"ROWS {start.this} is too many: {quote(window)}; at most {_MOST_ROWS - 1}")
    return Frame("rows", int(start.this))
