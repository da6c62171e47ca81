"""`+ - * / % div`, negation and `abs` as in Spark's ANSI mode: overflow and division by zero are errors.

Of decimals the result is a decimal (`decimals`). Of other numbers `/` gives a double, even for integers; `%`
has the sign of the dividend; `div` gives a bigint.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression import decimals
from spillway.plan.expression.decimal_types import as_decimal, result_type
from spillway.plan.expression.types import common_type, is_number, promote, spark_type

_NEGATED_DIGITS = 34
ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "div"})


def arithmetic(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """`left operator right`, row by row."""
    kind = _operand_type(operator, left.type, right.type)
    if pa.types.is_decimal(kind):
        return _decimal(operator, *(_as_decimal(side, kind) for side in (left, right)))
    if operator == "/":
        kind = pa.float64()
    if operator == "div":
        kind = pa.int64()
    left, right = promote(left, kind), promote(right, kind)
    if operator in _DIVISIONS:
        _refuse_zero(left, right, _DIVISIONS[operator])
    kernels: dict[str, Callable[..., pa.Array]] = {
        "+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked, "/": pc.divide,
        "%": _remainder, "div": _whole_quotient,
    }  # fmt: skip
    return _checked(kernels[operator], left, right)


def negative(value: pa.Array) -> pa.Array:
    """`-value`."""
    _check_negation("-", value.type)
    return _checked(pc.negate_checked, promote(value, _operand_type("-", value.type, value.type)))


def absolute(value: pa.Array) -> pa.Array:
    """`abs(value)`; a decimal's absolute value has the decimal's own type."""
    if not is_number(value.type) and not pa.types.is_null(value.type):
        raise ViewError(f"abs of {spark_type(value.type)} is not supported; cast it to a number")
    _check_negation("abs", value.type)
    return _checked(pc.abs_checked, promote(value, common_type(value.type, _null_as(value.type))))


def _check_negation(operator: str, kind: pa.DataType) -> None:
    if pa.types.is_decimal(kind) and kind.precision > _NEGATED_DIGITS:
        raise ViewError(
            f"{operator} of {spark_type(kind)} is refused, for Spark rounds it to {_NEGATED_DIGITS} digits; "
            "subtract it from 0 instead"
        )


def _decimal(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if not len(left):
        return pa.nulls(0, pa.int64() if operator == "div" else result_type(operator, left.type, right.type))
    if operator in _DIVISIONS:
        _refuse_zero(left, right, _DIVISIONS[operator])
    if operator in "+-":
        return decimals.add(operator, left, right)
    kernels: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
        "*": decimals.multiply, "/": decimals.divide, "%": decimals.remainder, "div": decimals.whole_quotient,
    }  # fmt: skip
    return kernels[operator](left, right)


def _as_decimal(value: pa.Array, other: pa.DataType) -> pa.Array:
    """A number as the decimal that it is beside a decimal; NULL has the type of the other operand."""
    return promote(value, other if pa.types.is_null(value.type) else as_decimal(value.type))


def _operand_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    kind = common_type(left, right)
    if pa.types.is_null(kind):
        return pa.float64()
    if not is_number(kind):
        raise ViewError(
            f"{spark_type(left)} {operator} {spark_type(right)} is not supported; cast to a number"
        )
    if operator == "div" and pa.types.is_floating(kind):
        raise ViewError(f"{spark_type(left)} div {spark_type(right)} is not supported; cast to bigint")
    return kind


def _null_as(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_null(kind) else kind


def _checked(kernel: Callable[..., pa.Array], *operands: pa.Array) -> pa.Array:
    try:
        return kernel(*operands)
    except pa.ArrowInvalid:
        kind = spark_type(operands[0].type)
        raise ViewError(f"arithmetic overflow in {kind}; cast an operand to a wider type") from None


def _whole_quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    valid = pc.and_(left.is_valid(), right.is_valid())
    return pc.divide_checked(left, pc.if_else(valid, right, pa.scalar(None, right.type)))


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    valid = pc.and_(left.is_valid(), right.is_valid())
    dividend = pc.fill_null(left, 0).to_numpy(zero_copy_only=False)
    divisor = pc.if_else(valid, right, pa.scalar(1, right.type)).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore", over="ignore"):
        values = pa.array(np.fmod(dividend, divisor), left.type)
    return pc.if_else(valid, values, pa.scalar(None, left.type))


def _refuse_zero(left: pa.Array, right: pa.Array, message: str) -> None:
    """Spark divides only where both operands are present, and there refuses zero in every type."""
    if not len(left):
        return
    zero = pc.and_(left.is_valid(), pc.fill_null(pc.equal(right, pa.scalar(0, right.type)), False))
    if pc.any(zero).as_py():
        raise ViewError(message)


_DIVISIONS = {
    "/": "division by zero; test the divisor in CASE WHEN",
    "%": "remainder by zero; test the divisor in CASE WHEN",
    "div": "division by zero; test the divisor in CASE WHEN",
}
