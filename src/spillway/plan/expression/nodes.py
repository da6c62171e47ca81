"""Expressions over several inputs, which can only be evaluated after the join.

A tree of plain values: it is pickled to workers, hashed into the view's fingerprint, and compared in tests,
so it holds no parser objects. Parts that depend on one input are never here; Spark evaluates them before the
row is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A state column: the index of its input, and its index among that input's columns."""

    input: int
    column: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant with its Spark type (`void` for a bare NULL); an `interval day` counts whole days."""

    value: bool | int | float | Decimal | str | None
    type: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator by its Spark name (`+`, `<=>`, `and`, `case`, `coalesce`, ...).

    `case` has condition, value, condition, value, ..., and last the value of ELSE.
    """

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(argument AS type)`."""

    argument: Expression
    type: str


Expression: TypeAlias = ColumnRef | Literal | Call | Cast

_INFIX = frozenset({
    "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "||", "div",
})  # fmt: skip


def references(expression: Expression) -> Iterator[ColumnRef]:
    """Every state column that `expression` reads, left to right, with repetitions."""
    if isinstance(expression, ColumnRef):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from references(argument)
    elif isinstance(expression, Cast):
        yield from references(expression.argument)


def describe(expression: Expression, name: Callable[[ColumnRef], str]) -> str:
    """`expression` in SQL, with columns called by `name`."""
    if isinstance(expression, ColumnRef):
        return name(expression)
    if isinstance(expression, Literal):
        return _describe_literal(expression)
    if isinstance(expression, Cast):
        return f"CAST({describe(expression.argument, name)} AS {expression.type})"
    parts = [describe(argument, name) for argument in expression.arguments]
    inner = [
        f"({part})" if isinstance(argument, Call) and argument.function in _INFIX else part
        for part, argument in zip(parts, expression.arguments, strict=True)
    ]
    if expression.function in _INFIX:
        return f" {expression.function.upper()} ".join(inner)
    if expression.function == "like":
        escape = f" ESCAPE {parts[2]}" if len(parts) > 2 else ""
        return f"{inner[0]} LIKE {parts[1]}{escape}"
    if expression.function == "in":
        return f"{inner[0]} IN ({', '.join(parts[1:])})"
    if expression.function == "not":
        return f"NOT {inner[0]}"
    if expression.function == "negative":
        return f"-{inner[0]}"
    if expression.function == "is null":
        return f"{inner[0]} IS NULL"
    if expression.function == "case":
        pairs = zip(parts[:-1:2], parts[1::2], strict=True)
        branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {branches} ELSE {parts[-1]} END"
    return f"{expression.function}({', '.join(parts)})"


def _describe_literal(literal: Literal) -> str:
    if literal.type.startswith("interval "):
        return f"INTERVAL '{literal.value}' {literal.type.removeprefix('interval ').upper()}"
    if isinstance(literal.value, str):
        return "'" + literal.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "NULL" if literal.value is None else str(literal.value).upper()
