"""Whole numbers of up to 76 digits, as Arrow arrays of `decimal256(76, 0)`: sums, products, quotients.

Arrow's kernels compute on 256-bit integers, whatever the decimal type says; so an array is relabelled
(`view`) with the digits and the point that a kernel asks for. Values stay below 10**76, and no sum or product
here reaches 2**255.

Arrow's own long division gives wrong quotients for some operands (26.0.1: 10**53 - 10 cut by 15 digits). It
divides rightly by what fits 32 bits; other quotients are only taken as a guess, checked by their remainder.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

DIGITS = 76
"""What 256 bits always hold."""
WHOLE = pa.decimal256(DIGITS, 0)
_SAFE_CUT = 9
"""Arrow divides by 10**9 rightly."""
_LEAST_STEP = 4
"""Arrow's division multiplies the dividend by 10**4 at least."""
_FLOATING_ERROR = 1e-12


def add(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left + right`."""
    narrow = pa.decimal256(DIGITS - 1, 0)  # Arrow's type of a sum has one digit more
    return pc.add(left.view(narrow), right.view(narrow))


def subtract(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left - right`."""
    narrow = pa.decimal256(DIGITS - 1, 0)
    return pc.subtract(left.view(narrow), right.view(narrow))


def multiply(left: pa.Array, right: pa.Array) -> pa.Array:
    """`left * right`, which must have 76 digits at most."""
    return pc.multiply(left.view(pa.decimal256(38, 0)), right.view(pa.decimal256(37, 0)))


def shift(value: pa.Array, places: int) -> pa.Array:
    """`value` with that many zeroes appended; pa.ArrowInvalid if that has more than 76 digits."""
    return pc.cast(pc.cast(value, pa.decimal256(DIGITS - places, 0)), pa.decimal256(DIGITS, places)).view(
        WHOLE
    )


def cut(value: pa.Array, places: int) -> pa.Array:
    """`value` without its last digits, towards zero."""
    while places:
        some = min(places, _SAFE_CUT)
        value = pc.cast(value.view(pa.decimal256(DIGITS, some)), WHOLE, safe=False)
        places -= some
    return value


def round_half_up(value: pa.Array, places: int) -> pa.Array:
    """`value` without its last digits, rounded; halves away from zero."""
    if not places:
        return value
    almost = cut(value, places - 1)
    kept = cut(almost, 1)
    digit = subtract(almost, shift(kept, 1))
    return add(kept, cut(add(digit, digit), 1))


def has_digits(value: pa.Array, most: int) -> bool:
    """Whether all values have at most that many digits, trailing zeroes aside."""
    for _ in range(DIGITS - most):
        short = pc.less(pc.abs(value), _power(most))
        if pc.all(short, min_count=0).as_py():
            return True
        fewer = cut(value, 1)
        if not pc.all(pc.or_(short, pc.equal(shift(fewer, 1), value)), min_count=0).as_py():
            return False
        value = pc.if_else(short, value, fewer)
    return True


def divide(dividend: pa.Array, places: int, divisor: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The quotient of `dividend * 10**places` towards zero, and the remainder.

    Dividend and divisor have 38 digits at most, and 38 + `places` fit. No divisor is zero.
    """
    negative = pc.less(dividend, _zero())
    signs_differ = pc.xor(negative, pc.less(divisor, _zero()))
    dividend, divisor = pc.abs(dividend), pc.abs(divisor)
    more = max(0, _LEAST_STEP - places)
    guess = pc.divide(
        dividend.view(pa.decimal256(38, 0)),
        shift(divisor, more).view(pa.decimal256(places + more - 1, 0)),
    ).view(WHOLE)
    quotient, rest = corrected(shift(dividend, places), divisor, guess)
    return _signed(signs_differ, quotient), _signed(negative, rest)


def corrected(dividend: pa.Array, divisor: pa.Array, quotient: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The quotient, from a guess, and the remainder; neither operand is negative.

    The floating-point quotient of what is left says how far off the guess is; it is rounded down, so that
    every turn comes closer and none goes too far.
    """
    while True:
        rest = subtract(dividend, multiply(quotient, divisor))
        low, high = pc.less(rest, _zero()), pc.greater_equal(rest, divisor)
        wrong = pc.or_(low, high)
        if not pc.any(wrong).as_py():
            return quotient, rest
        turns = pc.divide(pc.cast(pc.abs(rest), pa.float64()), pc.cast(divisor, pa.float64()))
        least = pc.max_element_wise(pc.multiply(turns, 1 - _FLOATING_ERROR), 1.0)
        step = pc.cast(pc.trunc(pc.if_else(wrong, least, 0.0)), WHOLE)
        quotient = add(quotient, _signed(low, step))


def _signed(negative: pa.Array, value: pa.Array) -> pa.Array:
    return pc.if_else(negative, pc.negate(value), value)


def _zero() -> pa.Scalar:
    return pa.scalar(0, WHOLE)


def _power(places: int) -> pa.Scalar:
    return pa.scalar(Decimal(1).scaleb(places), WHOLE)
