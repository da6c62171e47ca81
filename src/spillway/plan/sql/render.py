"""SQL text of a resolved expression, in two forms: what Spark executes, and what a reader sees.

The first drops aliases (it runs over one source) and quotes every identifier; the second keeps aliases and
quotes only where it must. Both are deterministic, so equal text means equal expression.
"""

from __future__ import annotations

import re

from sqlglot import exp

from spillway.model import Window
from spillway.plan.sql.dialect import SpillwayDialect

_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", re.DOTALL)
_SIMPLE = re.compile(r"\A`([A-Za-z_][A-Za-z0-9_]*)`\Z")
_LONGEST = 80


def source_sql(node: exp.Expr) -> str:
    """Spark SQL over the columns of the one source that `node` depends on."""
    bare = node.copy()
    for column in list(bare.find_all(exp.Column)):
        column.set("table", None)
    return _sql(bare)


def label(node: exp.Expr) -> str:
    """`node` as the user would write it, on one line."""
    return display(_sql(node))


def display(sql: str) -> str:
    """`sql` without the backquotes that a reader does not need; different texts stay different."""
    return _QUOTED.sub(lambda found: _SIMPLE.sub(r"\1", found[0]), sql)


def quote(node: exp.Expr) -> str:
    """The text of an unresolved clause for an error message, shortened to stay on one line."""
    text = " ".join(label(node).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _sql(node: exp.Expr) -> str:
    return str(node.sql(dialect=SpillwayDialect, normalize_functions=False, comments=False))


def window_text(window: Window) -> str:
    """A window for a reader."""
    late = f"rows up to {_seconds(window.lateness_us)} late"
    if window.range_us is None:
        return f"unbounded, {late}"
    return f"the last {_seconds(window.range_us)}, {late}"


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:g} s"
