"""`+ - * / %`, negation and `abs` as in Spark's ANSI mode: overflow and division by zero are errors.

`/` gives a double, even for integers; `%` has the sign of the dividend. Known limit: no arithmetic on
decimals, whose result types have rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression.types import common_type, is_number, promote, spark_type


def arithmetic(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """`left operator right`, row by row."""
    kind = _operand_type(operator, left.type, right.type)
    if operator == "/":
        kind = pa.float64()
    left, right = promote(left, kind), promote(right, kind)
    if operator in "/%":
        return _divide(left, right) if operator == "/" else _remainder(left, right)
    kernels: dict[str, Callable[..., pa.Array]] = {
        "+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked,
    }  # fmt: skip
    return _checked(kernels[operator], left, right)


def negative(value: pa.Array) -> pa.Array:
    """`-value`."""
    return _checked(pc.negate_checked, promote(value, _operand_type("-", value.type, value.type)))


def absolute(value: pa.Array) -> pa.Array:
    """`abs(value)`; a decimal's absolute value has the decimal's own type, so it is allowed."""
    if not is_number(value.type) and not pa.types.is_null(value.type):
        raise ViewError(f"abs of {spark_type(value.type)} is not supported; cast it to a number")
    return _checked(pc.abs_checked, promote(value, common_type(value.type, _null_as(value.type))))


def _operand_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    kind = common_type(left, right)
    if pa.types.is_null(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        raise ViewError(
            f"{spark_type(left)} {operator} {spark_type(right)}: arithmetic on decimals of several inputs "
            "is not supported yet; cast them to double"
        )
    if not is_number(kind):
        raise ViewError(
            f"{spark_type(left)} {operator} {spark_type(right)} is not supported; cast to a number"
        )
    return kind


def _null_as(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_null(kind) else kind


def _checked(kernel: Callable[..., pa.Array], *operands: pa.Array) -> pa.Array:
    try:
        return kernel(*operands)
    except pa.ArrowInvalid:
        kind = spark_type(operands[0].type)
        raise ViewError(f"arithmetic overflow in {kind}; cast an operand to a wider type") from None


def _divide(left: pa.Array, right: pa.Array) -> pa.Array:
    _refuse_zero(left, right, "division by zero; test the divisor in CASE WHEN")
    return pc.divide(left, right)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    _refuse_zero(left, right, "remainder by zero; test the divisor in CASE WHEN")
    valid = pc.and_(left.is_valid(), right.is_valid())
    dividend = pc.fill_null(left, 0).to_numpy(zero_copy_only=False)
    divisor = pc.if_else(valid, right, pa.scalar(1, right.type)).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore", over="ignore"):
        values = pa.array(np.fmod(dividend, divisor), left.type)
    return pc.if_else(valid, values, pa.scalar(None, left.type))


def _refuse_zero(left: pa.Array, right: pa.Array, message: str) -> None:
    """Spark divides only where both operands are present, and there refuses zero in every type."""
    zero = pc.and_(left.is_valid(), pc.fill_null(pc.equal(right, pa.scalar(0, right.type)), False))
    if pc.any(zero).as_py():
        raise ViewError(message)
