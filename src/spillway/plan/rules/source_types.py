"""The Spark type of an expression over the columns of one source, without Spark.

Types are known where these rules cover all of an expression: what `plan.expression` computes, and casts,
arithmetic on decimals and common functions, whose types are simpler than their values. None is the answer
for everything else, also where Spark would convert an argument to another type by itself: a wrong type
would show a plan that `run` refuses, or refuse one that it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from sqlglot import exp

from spillway.errors import ViewError
from spillway.model import Column, nested_parts, normalise_type
from spillway.plan.expression import ColumnRef, Expression, arrow_type, result_type, spark_type
from spillway.plan.rules.function_types import function_type, is_castable
from spillway.plan.rules.literals import read_literal
from spillway.plan.rules.lower import Lowering
from spillway.plan.rules.state_columns import StateColumns
from spillway.plan.sql import Input, Scope, display, label, parse_expression

_ARITHMETIC: Mapping[type[exp.Expr], str] = MappingProxyType(
    {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
)
_UNITS = frozenset({"year", "month", "week", "day", "hour", "minute", "second"})


def source_type(sql: str, columns: tuple[Column, ...]) -> str | None:
    """The type that Spark gives to `sql` over these columns; None if only Spark can tell."""
    node = parse_expression(sql)
    if node is None:
        return None
    try:
        return _SourceTyping(columns).type(node)
    except ViewError:
        return None


class _SourceTyping(Lowering):
    """Ends at columns; a part that is only typed, not evaluated, becomes one more column of its type."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        scope = Scope((Input("", "", columns),), (), ())
        super().__init__(scope, StateColumns(scope))
        self._numbers = {column.name.lower(): number for number, column in enumerate(columns)}
        self._types = [column.type for column in columns]
        self._rules |= {
            exp.Cast: self._converted,
            exp.TryCast: self._converted,
            exp.Anonymous: self._called,
            exp.Trim: self._trimmed,
            exp.Substring: self._part_of_text,
        }

    def type(self, node: exp.Expr) -> str:
        """The Spark type of `node`; refused if it is not known."""
        return self._type_of(self._lower(node, lazy=False))

    def _type_of(self, value: Expression) -> str:
        if isinstance(value, ColumnRef):
            return self._types[value.column]
        return spark_type(result_type(value, self._arrow))

    def _arrow(self, ref: ColumnRef) -> pa.DataType:
        kind = arrow_type(self._types[ref.column])
        if kind is None:
            raise ViewError(f"{self._types[ref.column]} is left to Spark")
        return kind

    def _of_type(self, kind: str) -> ColumnRef:
        self._types.append(kind)
        return ColumnRef(0, len(self._types) - 1)

    def _lower(self, node: exp.Expr, lazy: bool) -> Expression:
        if isinstance(node, exp.Paren):
            return self._lower(node.this, lazy)
        if isinstance(node, exp.Column):
            return self._column(node)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        literal = None if isinstance(node, exp.Cast | exp.Null) else read_literal(node)
        return self._descend(node, lazy) if literal is None else literal

    def _column(self, node: exp.Column) -> ColumnRef:
        """A column of the source, or a field of one, to any depth."""
        first, *fields = (part.name.lower() for part in node.parts)
        if first not in self._numbers:
            raise self._unsupported(node)
        if not fields:
            return ColumnRef(0, self._numbers[first])
        kind = self._types[self._numbers[first]]
        for field in fields:
            nested = nested_parts(kind)
            found = [part for name, part in nested[1] if name.lower() == field] if nested else []
            if len(found) != 1:
                raise self._unsupported(node)
            kind = found[0]
        return self._of_type(kind)

    def _arithmetic(self, node: exp.Expr) -> Expression:
        operator = _ARITHMETIC[type(node)]
        if isinstance(node.expression, exp.Interval) and operator in "+-":
            return self._shifted(node.this, node.expression)
        return self._binary(operator, node, lazy=False)

    def _shifted(self, time: exp.Expr, interval: exp.Interval) -> ColumnRef:
        """A timestamp plus or minus a constant interval."""
        kind, unit, amount = self.type(time), interval.args.get("unit"), interval.this
        is_plain = isinstance(amount, exp.Literal) and re.fullmatch(r"\d{1,6}", amount.name) is not None
        if not is_plain or unit is None or unit.name.lower() not in _UNITS or kind[:9] != "timestamp":
            raise self._unsupported(interval)
        return self._of_type(kind)

    def _converted(self, node: exp.Expr, _lazy: bool) -> Expression:
        target = normalise_type(display(label(node.args["to"])))
        if set(node.args) - {"this", "to"} and any(
            node.args[name] for name in set(node.args) - {"this", "to"}
        ):
            raise self._unsupported(node)
        if not is_castable(self.type(node.this), target):
            raise self._unsupported(node)
        return self._of_type(target)

    def _called(self, node: exp.Expr, lazy: bool) -> Expression:
        name, arguments = str(node.this).lower(), node.expressions
        if name == "timestampdiff" and len(arguments) == 3:
            arguments = arguments[1:]  # the first one is a unit
        kind = self._function_type(name, arguments)
        return self._function(node, lazy) if kind is None else self._of_type(kind)

    def _trimmed(self, node: exp.Expr, _lazy: bool) -> Expression:
        given = [name for name, value in node.args.items() if value]
        kind = self._function_type("trim", [node.this]) if given == ["this"] else None
        if kind is None:
            raise self._unsupported(node)
        return self._of_type(kind)

    def _part_of_text(self, node: exp.Expr, _lazy: bool) -> Expression:
        parts = [node.args.get(name) for name in ("this", "start", "length")]
        kind = self._function_type("substring", [part for part in parts if part is not None])
        if kind is None:
            raise self._unsupported(node)
        return self._of_type(kind)

    def _function_type(self, name: str, arguments: Sequence[exp.Expr]) -> str | None:
        return function_type(name, lambda: [self.type(argument) for argument in arguments])

    def _unsupported(self, node: exp.Expr) -> ViewError:
        return ViewError(f"{node.sql()} is left to Spark")
