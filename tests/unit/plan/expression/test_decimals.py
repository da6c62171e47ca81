"""Decimals against Python's, exactly: every operator, up to 38 digits, rounded half up, or refused."""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spillway.errors import ViewError
from spillway.plan.expression import decimals
from spillway.plan.expression import wide_integers as wide
from spillway.plan.expression.decimal_types import common_decimal, result_type

EXACT = Context(prec=400)
WORD = 2**32


def whole_numbers(most: int) -> st.SearchStrategy[int]:
    """Of so many digits, often nines, or near a power of 2**32, where carries happen."""
    return st.one_of(
        st.integers(0, 10**most - 1),
        st.tuples(st.integers(0, most), st.integers(0, most)).map(
            lambda places: abs(10 ** max(places) - 10 ** min(places))
        ),
        st.tuples(st.integers(0, 7), st.integers(-3, 3)).map(lambda near: abs(WORD ** near[0] + near[1])),
    ).map(lambda number: number % 10**most)


@st.composite
def decimal_arrays(draw: st.DrawFn) -> pa.Array:
    """One value and a null, of any decimal type."""
    precision = draw(st.one_of(st.just(38), st.integers(1, 38)))
    scale = draw(st.one_of(st.just(0), st.just(precision), st.integers(0, precision)))
    digits = draw(st.sampled_from([1, -1])) * draw(whole_numbers(precision))
    return pa.array([Decimal(digits).scaleb(-scale, EXACT), None], pa.decimal128(precision, scale))


def rounded(value: Decimal, kind: pa.Decimal128Type) -> Decimal | None:
    """`value` in this type; None if it has too many digits."""
    result = value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, EXACT)
    return result if result.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None


def value_of(array: pa.Array) -> Decimal:
    value: Decimal = array[0].as_py()
    return value


Operation = tuple[Callable[[pa.Array, pa.Array], pa.Array], Callable[[Decimal, Decimal], Decimal]]
OPERATIONS: dict[str, Operation] = {
    "+": (lambda left, right: decimals.add("+", left, right), EXACT.add),
    "-": (lambda left, right: decimals.add("-", left, right), EXACT.subtract),
    "*": (decimals.multiply, EXACT.multiply),
    "/": (decimals.divide, EXACT.divide),
    "%": (decimals.remainder, EXACT.remainder),
}


@pytest.mark.parametrize("operator", OPERATIONS)
@given(decimal_arrays(), decimal_arrays())
def test_arithmetic_is_exact_or_refused(operator: str, left: pa.Array, right: pa.Array) -> None:
    ours, exact = OPERATIONS[operator]
    if operator in "/%" and not value_of(right):
        return
    kind = result_type(operator, left.type, right.type)
    expected = rounded(exact(value_of(left), value_of(right)), kind)
    if operator == "%":
        quotient = str(abs(int(EXACT.divide_int(value_of(left), value_of(right))))).rstrip("0")
        expected = expected if len(quotient) <= 39 else None
    if expected is None:
        with pytest.raises(ViewError):
            ours(left, right)
    else:
        result = ours(left, right)
        assert result.type == kind
        assert result.to_pylist() == [expected, None]


@given(decimal_arrays(), st.integers(1, 38), st.integers(0, 38))
def test_another_type_rounds_half_up(value: pa.Array, precision: int, scale: int) -> None:
    kind = pa.decimal128(precision, min(scale, precision))
    expected = rounded(value_of(value), kind)
    if expected is None:
        with pytest.raises(ViewError, match=rf"decimal\({kind.precision},{kind.scale}\) does not hold"):
            decimals.rescale(value, kind)
    else:
        assert decimals.rescale(value, kind).to_pylist() == [expected, None]


@given(decimal_arrays())
def test_digits_before_the_point(value: pa.Array) -> None:
    assert decimals.truncate(value).to_pylist() == [int(value_of(value)), None]


@given(whole_numbers(76), st.integers(0, 70))
@example(10**56 - 10**13, 15)
def test_digits_are_cut_off_exactly(number: int, places: int) -> None:
    """Arrow's own division is wrong for the example."""
    value = pa.array([Decimal(0), Decimal(number), Decimal(-number)], wide.WHOLE)[1:]
    kept = number // 10**places
    assert wide.cut(value, places).to_pylist() == [kept, -kept]


@given(whole_numbers(38), whole_numbers(38), st.integers(0, 38))
def test_quotients_are_exact(dividend: int, divisor: int, places: int) -> None:
    arrays = [
        pa.array([Decimal(0), Decimal(number), Decimal(-number)], wide.WHOLE)[1:]
        for number in (dividend, divisor or 1)
    ]
    quotient, rest = divmod(dividend * 10**places, divisor or 1)
    found = [array.to_pylist() for array in wide.divide(arrays[0], places, arrays[1])]
    assert found == [[quotient, quotient], [rest, -rest]]


@pytest.mark.parametrize("guess", [0, 1, 10**30, 10**37])
def test_a_wrong_guess_of_a_quotient_is_corrected(guess: int) -> None:
    numbers = [(10**53 - 11, 10**15), (10**60, 7 * 10**22 + 1), (5, 9)]
    dividend, divisor, guesses = (
        pa.array([Decimal(number) for number in column], pa.decimal256(61, 0)).cast(wide.WHOLE)
        for column in (*zip(*numbers, strict=True), (guess,) * 3)
    )
    quotient, rest = wide.corrected(dividend, divisor, guesses)
    assert list(zip(quotient.to_pylist(), rest.to_pylist(), strict=True)) == [
        divmod(*pair) for pair in numbers
    ]


def test_a_remainder_needs_a_quotient_that_spark_can_hold() -> None:
    divisor = pa.array([Decimal("0.07")], pa.decimal128(2, 2))
    small, large = (pa.array([Decimal("9" * digits)], pa.decimal128(38, 0)) for digits in (37, 38))
    assert decimals.remainder(small, divisor).to_pylist() == [Decimal("0.04")]
    with pytest.raises(ViewError, match="more than 39 digits"):
        decimals.remainder(large, divisor)
    power = pa.array([Decimal(10) ** 37], pa.decimal128(38, 0))
    assert decimals.remainder(power, pa.array([Decimal("0.001")])).to_pylist() == [Decimal(0)]


def test_common_types_keep_the_digits_before_the_point() -> None:
    assert common_decimal(pa.int64(), pa.decimal128(38, 20)) == pa.decimal128(38, 18)
    assert common_decimal(pa.decimal128(38, 0), pa.decimal128(38, 38)) == pa.decimal128(38, 0)
    assert common_decimal(pa.decimal128(5, 1), pa.int8()) == pa.decimal128(5, 1)
