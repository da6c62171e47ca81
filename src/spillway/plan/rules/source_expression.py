"""An expression over the columns of one source, for evaluation outside Spark.

The plan keeps such expressions as Spark SQL, because Spark evaluates them while it reads a source. Here the
text is taken apart down to the source's columns, and typed by the rules of `plan.expression`, which are
Spark's.

Known limit: None is the answer for everything that these rules do not cover, also where Spark would convert
one type into another by itself. Then Spark has to be asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Column
from spillway.plan.expression import ColumnRef, Expression, arrow_type, references, result_type
from spillway.plan.rules.literals import read_literal
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.sql import Input, Scope, parse_expression


@dataclass(frozen=True, slots=True)
class SourceExpression:
    """A value of each row of a source; a `ColumnRef` names a column by its number in the source."""

    value: Expression
    type: pa.DataType


def read_source_expression(sql: str, columns: tuple[Column, ...]) -> SourceExpression | None:
    """The expression that `sql` is over these columns; None if only Spark can tell."""
    node = parse_expression(sql)
    if node is None:
        return None
    try:
        value = _SourceLowering(columns).lower(node)
        types = {ref: arrow_type(columns[ref.column].type) for ref in references(value)}
        if any(kind is None for kind in types.values()):
            return None
        return SourceExpression(value, result_type(value, lambda ref: types[ref]))
    except ViewError:
        return None


class _SourceLowering(Lowering):
    """Ends at columns, not at the largest part that depends on one input."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        scope = Scope((Input("", "", columns),), (), ())
        super().__init__(scope, StateColumns(scope))
        self._numbers = {column.name.lower(): number for number, column in enumerate(columns)}

    def lower(self, node: exp.Expr) -> Expression:
        return self._lower(node, lazy=False)

    def _lower(self, node: exp.Expr, lazy: bool) -> Expression:
        if isinstance(node, exp.Paren):
            return self._lower(node.this, lazy)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self._numbers:
            return ColumnRef(0, self._numbers[node.name.lower()])
        literal = read_literal(node)
        return self._descend(node, lazy) if literal is None else literal

    def _unsupported(self, node: exp.Expr) -> ViewError:
        return ViewError(f"{node.sql()} is left to Spark")
