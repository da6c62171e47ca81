"""The state columns of a view while it is planned: what each input must keep, each expression once.

The only mutable object in planning. It lives for one call of `plan_view`.
"""

from __future__ import annotations

from sqlglot import exp

from spillway.plan.expression import ColumnRef
from spillway.plan.operators import StateColumn
from spillway.plan.sql import Scope, display, source_sql, without_parentheses


class StateColumns:
    """Grows as outputs and residual predicates ask for values of single inputs."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._columns: list[list[StateColumn]] = [[] for _ in scope.inputs]

    def add(self, index: int, node: exp.Expr) -> ColumnRef:
        """The state column of input `index` that holds `node`: an existing one with an equal expression,
        or a new one."""
        node = without_parentheses(node)
        expression = source_sql(node)
        columns = self._columns[index]
        for position, column in enumerate(columns):
            if column.expression == expression:
                return ColumnRef(index, position)
        known = self._scope.inputs[index].find(node.name) if isinstance(node, exp.Column) else None
        columns.append(
            StateColumn(f"c{len(columns)}", expression, display(expression), known.type if known else None)
        )
        return ColumnRef(index, len(columns) - 1)

    def type(self, ref: ColumnRef) -> str | None:
        """The Spark type of a state column, if the catalog knows it."""
        return self._columns[ref.input][ref.column].type

    def of(self, index: int) -> tuple[StateColumn, ...]:
        """All state columns of one input so far."""
        return tuple(self._columns[index])

    def sizes(self) -> tuple[int, ...]:
        """How many columns each input has; see `restore`."""
        return tuple(len(columns) for columns in self._columns)

    def restore(self, sizes: tuple[int, ...]) -> None:
        """Forget the columns that were added since `sizes` was taken."""
        for columns, size in zip(self._columns, sizes, strict=True):
            del columns[size:]
