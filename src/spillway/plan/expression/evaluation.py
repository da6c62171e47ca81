"""Evaluate an expression over the columns of joined rows, with the semantics of Spark in ANSI mode.

Logic is three-valued. `case`, `coalesce`, `and` and `or` evaluate an argument only for the rows that need it,
so a guarded division (`CASE WHEN b.y <> 0 THEN a.x / b.y END`) fails on no row that Spark would accept. Types
never depend on the rows: `result_type` evaluates over no rows, which checks an expression before any data is
read. There, no constant is made: Arrow loads pandas for it, which takes longer than planning a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression import rounding, temporal
from spillway.plan.expression import strings as text
from spillway.plan.expression.arithmetic import ARITHMETIC, absolute, arithmetic, negative
from spillway.plan.expression.casts import cast
from spillway.plan.expression.comparison import compare, extreme
from spillway.plan.expression.nodes import Call, Cast, ColumnRef, Expression, Literal, describe
from spillway.plan.expression.types import arrow_type, common_type, promote, spark_type

Columns = Callable[[ColumnRef], pa.Array]
Labels = Callable[[ColumnRef], str]
"""What a reader calls a column: `p.price`."""


def _position(ref: ColumnRef) -> str:
    return f"input{ref.input}.c{ref.column}"


def evaluate(expression: Expression, columns: Columns, rows: int, labels: Labels = _position) -> pa.Array:
    """The value of `expression` for each of `rows` rows, whose columns `columns` gives."""
    try:
        return _value(expression, _Rows(columns, rows))
    except ViewError as error:
        raise ViewError(f"{error} (in {describe(expression, labels)})") from None


def result_type(
    expression: Expression, types: Callable[[ColumnRef], pa.DataType], labels: Labels = _position
) -> pa.DataType:
    """The type of `expression` over columns of these types; refused when they do not fit."""
    return evaluate(expression, lambda ref: pa.nulls(0, types(ref)), 0, labels).type


class _Rows:
    """Some of the joined rows; columns are gathered when an expression asks for them."""

    __slots__ = ("_columns", "count")

    def __init__(self, columns: Columns, count: int) -> None:
        self._columns = columns
        self.count = count

    def column(self, ref: ColumnRef) -> pa.Array:
        array = self._columns(ref)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
            array = array.cast(pa.string())
        return array

    def only(self, mask: pa.Array) -> _Rows:
        if not self.count:
            return self
        return _Rows(lambda ref: self.column(ref).filter(mask), pc.sum(mask, min_count=0).as_py())


def _value(expression: Expression, rows: _Rows) -> pa.Array:
    if isinstance(expression, ColumnRef):
        return rows.column(expression)
    if isinstance(expression, Literal):
        kind = arrow_type(expression.type)
        return pa.repeat(pa.scalar(expression.value, kind), rows.count) if rows.count else pa.nulls(0, kind)
    if isinstance(expression, Cast):
        return cast(_value(expression.argument, rows), expression.type)
    return _call(expression, rows)


def _call(call: Call, rows: _Rows) -> pa.Array:
    function, arguments = call.function, call.arguments
    if function in ("and", "or"):
        return _connect(function, arguments, rows)
    if function == "case":
        return _case(arguments, rows)
    if function == "coalesce":
        return _coalesce(arguments, rows)
    if function == "in":
        return _in(arguments, rows)
    if function == "not":
        return pc.invert(_truth(arguments[0], rows))
    if function in _WITH_CONSTANTS:
        constants = [argument.value for argument in arguments[1:] if isinstance(argument, Literal)]
        return _WITH_CONSTANTS[function](_value(arguments[0], rows), *constants)
    if function in ARITHMETIC:
        return _calculate(function, arguments, rows)
    if function in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        operands = _operands(arguments, rows)
        _check_bounds(function, arguments, operands)
        return compare(function, *operands)
    values = [_value(argument, rows) for argument in arguments]
    if function in ("least", "greatest"):
        kind = reduce(common_type, [value.type for value in values])
        return extreme("<" if function == "least" else ">", [promote(value, kind) for value in values])
    if function in ("||", "concat"):
        return text.concat(values)
    return _FUNCTIONS[function](*values)


def _calculate(operator: str, arguments: Sequence[Expression], rows: _Rows) -> pa.Array:
    interval = arguments[1]
    if isinstance(interval, Literal) and interval.type.startswith("interval "):
        assert isinstance(interval.value, int)
        amount = interval.value if operator == "+" else -interval.value
        return temporal.shift(_value(arguments[0], rows), amount, interval.type.removeprefix("interval "))
    left, right = _operands(arguments, rows)
    if operator in "+-" and pa.types.is_date(left.type):
        if pa.types.is_date(right.type):
            raise ViewError("the difference of dates is an interval; write datediff(a, b) for days")
        return temporal.plus_days(left, right) if operator == "+" else temporal.minus_days(left, right)
    if operator == "-" and pa.types.is_timestamp(left.type):
        raise ViewError("the difference of timestamps is an interval; write unix_micros(a) - unix_micros(b)")
    return arithmetic(operator, left, right)


def _check_bounds(operator: str, arguments: Sequence[Expression], values: Sequence[pa.Array]) -> None:
    """Spark calls `bigint < 1e19` true even for null; an integer is never compared with such a literal."""
    if operator not in ("<", "<=", ">", ">=") or not any(pa.types.is_integer(value.type) for value in values):
        return
    for argument in arguments:
        number = argument.value if isinstance(argument, Literal) else None
        if isinstance(number, Decimal) and not -(2**63) <= number < 2**63:
            raise ViewError(f"{number} is outside bigint; compare an integer with a smaller number")


def _operands(arguments: Sequence[Expression], rows: _Rows) -> list[pa.Array]:
    """Two operands; beside a decimal, an integer literal is a decimal of the digits that it has."""
    values = [_value(argument, rows) for argument in arguments]
    if not any(pa.types.is_decimal(value.type) for value in values):
        return values
    return [
        promote(value, pa.decimal128(len(str(abs(argument.value))), 0))
        if isinstance(argument, Literal) and isinstance(argument.value, int)
        else value
        for argument, value in zip(arguments, values, strict=True)
    ]


def _truth(expression: Expression, rows: _Rows) -> pa.Array:
    value = _value(expression, rows)
    if not (pa.types.is_boolean(value.type) or pa.types.is_null(value.type)):
        raise ViewError(f"a condition is boolean, not {spark_type(value.type)}; write a comparison")
    return value.cast(pa.bool_())


def _no_truth(conditions: Sequence[Expression], rows: _Rows) -> pa.Array:
    """What conditions give for no rows; all must be boolean."""
    for condition in conditions:
        _truth(condition, rows)
    return pa.nulls(0, pa.bool_())


def _connect(function: str, arguments: Sequence[Expression], rows: _Rows) -> pa.Array:
    """Kleene logic; an argument is evaluated only where those before it have not decided."""
    decisive = function == "or"
    if not rows.count:
        return _no_truth(arguments, rows)
    result = _truth(arguments[0], rows)
    for argument in arguments[1:]:
        open_rows = pc.fill_null(pc.not_equal(result, decisive), True)
        more = _scatter([(open_rows, _truth(argument, rows.only(open_rows)))], pa.bool_(), rows.count)
        known = pc.if_else(open_rows, more, pa.scalar(decisive))
        result = (pc.or_kleene if decisive else pc.and_kleene)(result, known)
    return result


def _case(arguments: Sequence[Expression], rows: _Rows) -> pa.Array:
    kind = _branch_type([*arguments[1:-1:2], arguments[-1]], rows)
    if not rows.count:
        _no_truth(arguments[:-1:2], rows)
        return pa.nulls(0, kind)
    remaining = _all(rows)
    pieces: list[tuple[pa.Array, pa.Array]] = []
    for condition, branch in zip(arguments[:-1:2], arguments[1::2], strict=True):
        holds = pc.fill_null(_truth(condition, rows.only(remaining)), False)
        chosen = _scatter([(remaining, holds)], pa.bool_(), rows.count).fill_null(False)
        pieces.append((chosen, promote(_value(branch, rows.only(chosen)), kind)))
        remaining = pc.and_not(remaining, chosen)
    pieces.append((remaining, promote(_value(arguments[-1], rows.only(remaining)), kind)))
    return _scatter(pieces, kind, rows.count)


def _coalesce(arguments: Sequence[Expression], rows: _Rows) -> pa.Array:
    kind = _branch_type(arguments, rows)
    result = pa.nulls(rows.count, kind)
    for argument in arguments if rows.count else ():
        missing = result.is_null()
        more = _scatter([(missing, promote(_value(argument, rows.only(missing)), kind))], kind, rows.count)
        result = pc.if_else(missing, more, result)
    return result


def _in(arguments: Sequence[Expression], rows: _Rows) -> pa.Array:
    """Whether the first value equals one of the others, in the common type of all of them."""
    kind = _branch_type(arguments, rows)
    value = promote(_value(arguments[0], rows), kind)
    if not rows.count:
        for argument in arguments[1:]:
            compare("=", value, promote(_value(argument, rows), kind))
        return pa.nulls(0, pa.bool_())
    result = pa.repeat(pa.scalar(False), rows.count)
    for argument in arguments[1:]:
        open_rows = pc.fill_null(pc.invert(result), True)
        other = promote(_value(argument, rows.only(open_rows)), kind)
        equal = _scatter([(open_rows, compare("=", value.filter(open_rows), other))], pa.bool_(), rows.count)
        result = pc.or_kleene(result, pc.if_else(open_rows, equal, pa.scalar(False)))
    return result


def _branch_type(branches: Sequence[Expression], rows: _Rows) -> pa.DataType:
    none = rows.only(pa.repeat(pa.scalar(False), rows.count)) if rows.count else rows
    return reduce(common_type, [_value(branch, none).type for branch in branches])


def _all(rows: _Rows) -> pa.Array:
    return pa.repeat(pa.scalar(True), rows.count)


def _scatter(pieces: list[tuple[pa.Array, pa.Array]], kind: pa.DataType, count: int) -> pa.Array:
    """One array from values that belong to the rows of disjoint masks; null elsewhere."""
    position = np.full(count, -1, np.int64)
    offset = 0
    for mask, values in pieces:
        position[np.flatnonzero(mask.to_numpy(zero_copy_only=False))] = np.arange(
            offset, offset + len(values)
        )
        offset += len(values)
    joined = pa.concat_arrays([values.cast(kind) for _, values in pieces])
    return joined.take(pa.array(position, mask=position < 0))


def _part(name: str) -> Callable[[pa.Array], pa.Array]:
    return lambda value: temporal.part(name, value)


_FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "is null": lambda value: value.is_null(),
    "negative": negative,
    "abs": absolute,
    "floor": rounding.floor,
    "ceil": rounding.ceil,
    "sqrt": rounding.square_root,
    "sign": rounding.sign,
    "upper": text.upper,
    "lower": text.lower,
    "length": text.length,
    "concat_ws": text.concat_ws,
    "date_add": temporal.plus_days,
    "date_sub": temporal.minus_days,
    "datediff": temporal.days_between,
    **{name: _part(name) for name in temporal.PARTS},
}
_WITH_CONSTANTS: dict[str, Callable[..., pa.Array]] = {
    "like": text.like,
    "substring": text.substring,
    "replace": text.replace,
    "trim": text.trim,
    "ltrim": text.left_trim,
    "rtrim": text.right_trim,
    "lpad": text.left_pad,
    "rpad": text.right_pad,
    "round": rounding.round_half_up,
    "trunc": temporal.truncate,
}
"""Functions of one column; what follows it are literals."""
