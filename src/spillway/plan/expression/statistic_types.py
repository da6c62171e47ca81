"""The result types of statistics, as Spark has them, and which arguments are refused."""

from __future__ import annotations

import pyarrow as pa

from spillway.errors import ViewError
from spillway.model import Function
from spillway.plan.expression.types import is_number, spark_type

STATISTICS = 1
"""The input number under which outputs refer to statistics; their columns are numbered as in the plan."""
_WIDEST = 38
_SUM_DIGITS = 10
"""How many digits Spark adds to a decimal for its sum."""


def statistic_type(function: Function, kind: pa.DataType | None) -> pa.DataType:
    """The type of `function` over an argument of this type (None: over rows)."""
    if function == "count":
        return pa.int64()
    assert kind is not None
    if function in ("min", "max"):
        if not (is_number(kind) or _is_ordered(kind)):
            raise ViewError(f"{function} of {spark_type(kind)} is not supported; it has no order")
        return kind
    if not is_number(kind):
        raise ViewError(f"{function} of {spark_type(kind)} is not supported; cast it to a number")
    if function == "sum":
        if pa.types.is_decimal(kind):
            return pa.decimal128(min(_WIDEST, kind.precision + _SUM_DIGITS), kind.scale)
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()
    if function == "avg" and pa.types.is_decimal(kind):
        raise ViewError(f"avg of {spark_type(kind)} is not supported yet; cast it to double")
    return pa.float64()


def check_order(name: str, kind: pa.DataType) -> None:
    """Refuse a column of ORDER BY whose values have no order."""
    if not (is_number(kind) or _is_ordered(kind)):
        raise ViewError(f"ORDER BY {name}: {spark_type(kind)} has no order that is supported; cast it")


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )
