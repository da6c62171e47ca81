"""Which expressions over one source are evaluated outside Spark: those with Spark's value for every input.

Left out on purpose: `upper` and `lower` (Java and Python follow different versions of Unicode), casts of
floating-point numbers to integers (Spark saturates at the limits of a long), and the text of dates (years
beyond 9999). Known limit: text that is not UTF-8, which Parquet forbids, may have another length.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from spillway.plan.expression import Call, Cast, ColumnRef, Expression, result_type

_FUNCTIONS = frozenset({
    "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "in", "not", "is null",
    "case", "coalesce", "concat", "||", "like", "negative", "abs", "least", "greatest", "length",
})  # fmt: skip

TypeOf = Callable[[ColumnRef], pa.DataType]


def is_evaluated_alike(expression: Expression, type_of: TypeOf) -> bool:
    """Whether our value of the expression is Spark's for all rows."""
    if isinstance(expression, Call):
        return expression.function in _FUNCTIONS and all(
            is_evaluated_alike(argument, type_of) for argument in expression.arguments
        )
    if isinstance(expression, Cast):
        source = result_type(expression.argument, type_of)
        target = result_type(expression, type_of)
        return is_evaluated_alike(expression.argument, type_of) and _is_exact(source, target)
    return True


def _is_exact(source: pa.DataType, target: pa.DataType) -> bool:
    kinds = pa.types
    if source == target or kinds.is_null(source):
        return True
    if kinds.is_integer(source):
        return any((kinds.is_integer(target), kinds.is_floating(target), kinds.is_string(target)))
    if kinds.is_floating(source):
        return bool(kinds.is_floating(target))
    if kinds.is_boolean(source):
        return any((kinds.is_integer(target), kinds.is_string(target)))
    return bool(kinds.is_decimal(source) and target == pa.float64())
