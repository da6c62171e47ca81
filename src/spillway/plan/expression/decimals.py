"""Decimals computed as Spark computes them: exactly, then rounded half up to the type of the result.

Invariant: a value that does not fit its type is an error, never a wrong digit. Where the exact sum or product
has 38 digits at most, Arrow's 128-bit kernels give it; everything else is computed on whole numbers of 76
digits (`wide_integers`).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import ViewError
from spillway.plan.expression import wide_integers as wide
from spillway.plan.expression.decimal_types import MOST_DIGITS, exact_type, result_type

_QUOTIENT_DIGITS = 39
"""How many digits, zeroes at the end aside, the quotient behind a remainder may have."""


def rescale(value: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """A decimal in another decimal type, rounded half up."""
    more = kind.scale - value.type.scale
    if more >= 0 and value.type.precision + more <= kind.precision:
        return pc.cast(value, kind)
    whole = _whole(value)
    return _narrow(wide.shift(whole, more) if more > 0 else wide.round_half_up(whole, -more), kind)


def truncate(value: pa.Array) -> pa.Array:
    """The digits before the point, as a decimal of scale 0."""
    return _narrow(wide.cut(_whole(value), value.type.scale), pa.decimal128(value.type.precision, 0))


def from_integer(value: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """Integers as decimals."""
    return rescale(pc.cast(value, pa.decimal128(19, 0)), kind)


def add(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """`left + right` or `left - right`."""
    precision, scale = exact_type(operator, left.type, right.type)
    if precision <= MOST_DIGITS:
        return (pc.add if operator == "+" else pc.subtract)(left, right)
    sides = (wide.shift(_whole(side), scale - side.type.scale) for side in (left, right))
    total = (wide.add if operator == "+" else wide.subtract)(*sides)
    return _rounded(total, scale, result_type(operator, left.type, right.type))


def multiply(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left * right`."""
    precision, scale = exact_type("*", left.type, right.type)
    if precision <= MOST_DIGITS:
        return pc.multiply(left, right)
    return _rounded(
        wide.multiply(_whole(left), _whole(right)), scale, result_type("*", left.type, right.type)
    )


def divide(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left / right`; no divisor is zero."""
    kind = result_type("/", left.type, right.type)
    rest, divisor = _whole(left), _whole(right)
    quotient: pa.Array | None = None
    # One digit more than the result has tells how to round it.
    for places in _steps(kind.scale + 1 + right.type.scale - left.type.scale):
        part, rest = wide.divide(rest, places, divisor)
        try:
            quotient = part if quotient is None else wide.add(wide.shift(quotient, places), part)
        except pa.ArrowInvalid:
            raise _overflow(kind) from None
    return _narrow(wide.round_half_up(quotient, 1), kind)


def remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left % right`, with the sign of `left`; no divisor is zero."""
    more = right.type.scale - left.type.scale
    quotient, rest = wide.divide(*_aligned(left, right))
    if not wide.has_digits(quotient, _QUOTIENT_DIGITS):
        raise ViewError(
            f"a % b with a quotient of more than {_QUOTIENT_DIGITS} digits is not supported, nor by Spark; "
            "cast an operand to a decimal of fewer digits"
        )
    if more < 0:  # the digits of `left` that `right` does not have
        whole = _whole(left)
        last = wide.subtract(whole, wide.shift(wide.cut(whole, -more), -more))
        rest = wide.add(wide.shift(rest, -more), last)
    return _narrow(rest, result_type("%", left.type, right.type))


def whole_quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left div right`; no divisor is zero."""
    try:
        return pc.cast(wide.divide(*_aligned(left, right))[0], pa.int64())
    except pa.ArrowInvalid:
        raise ViewError("arithmetic overflow in bigint; use / for a quotient that is a decimal") from None


def _aligned(left: pa.Array, right: pa.Array) -> tuple[pa.Array, int, pa.Array]:
    """Dividend, its missing digits, and divisor, so that the quotient is a whole number.

    Digits of `left` that `right` does not have are cut off; they change no digit of the quotient.
    """
    more = right.type.scale - left.type.scale
    return wide.cut(_whole(left), max(0, -more)), max(0, more), _whole(right)


def _steps(places: int) -> list[int]:
    """A long division of that many digits, in parts of at most 38."""
    count = -(-places // MOST_DIGITS)
    return [places // count + (number < places % count) for number in range(count)]


def _whole(value: pa.Array) -> pa.Array:
    """The digits of a decimal without its point."""
    return pc.cast(value, pa.decimal256(wide.DIGITS, value.type.scale)).view(wide.WHOLE)


def _rounded(whole: pa.Array, scale: int, kind: pa.Decimal128Type) -> pa.Array:
    return _narrow(wide.round_half_up(whole, scale - kind.scale), kind)


def _narrow(whole: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """The decimal of these digits, if it has no more of them than its type."""
    try:
        return pc.cast(whole.view(pa.decimal256(wide.DIGITS, kind.scale)), kind)
    except pa.ArrowInvalid:
        raise _overflow(kind) from None


def _overflow(kind: pa.DataType) -> ViewError:
    return ViewError(
        f"arithmetic overflow: decimal({kind.precision},{kind.scale}) does not hold the value; "
        "cast an operand to a decimal of fewer digits, or to double"
    )
