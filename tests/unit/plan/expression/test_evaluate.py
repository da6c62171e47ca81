"""Expressions over several inputs against plain Python, row by row, with Spark's semantics."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import ViewError
from spillway.plan.expression.evaluation import evaluate, result_type
from spillway.plan.expression.nodes import Call, Cast, ColumnRef, Expression, Literal

A, B = ColumnRef(0, 0), ColumnRef(1, 0)
TRUE, VOID = Literal(True, "boolean"), Literal(None, "void")

small = st.one_of(st.none(), st.integers(-9, 9))
doubles = st.one_of(st.none(), st.floats(allow_subnormal=False), st.sampled_from([0.0, -0.0, math.nan]))
booleans = st.one_of(st.none(), st.booleans())
texts = st.one_of(st.none(), st.text("aAß%_\\\n.é", max_size=5))
decimals = st.one_of(st.none(), st.decimals(-99, 99, places=2))


def run(expression: Expression, left: list[Any], right: list[Any], *types: pa.DataType) -> list[Any]:
    arrays = [pa.array(left, types[0]), pa.array(right, types[-1])]
    result = evaluate(expression, lambda ref: arrays[ref.input], len(left))
    assert result.type == result_type(expression, lambda ref: arrays[ref.input].type)
    assert len(result) == len(left)
    values: list[Any] = result.to_pylist()
    return values


def pairs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[list[Any], list[Any]]]:
    return st.lists(st.tuples(values, values), max_size=12).map(
        lambda rows: ([left for left, _ in rows], [right for _, right in rows])
    )


def by_row(function: Callable[[Any, Any], Any], left: list[Any], right: list[Any]) -> list[Any]:
    return [None if a is None or b is None else function(a, b) for a, b in zip(left, right, strict=True)]


def order(value: Any) -> Any:
    """Spark's order of numbers: NaN equals itself and is above all."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: order(a) == order(b),
    "<>": lambda a, b: order(a) != order(b),
    "<": lambda a, b: order(a) < order(b),
    "<=": lambda a, b: order(a) <= order(b),
    ">": lambda a, b: order(a) > order(b),
    ">=": lambda a, b: order(a) >= order(b),
}


@pytest.mark.parametrize(
    ("values", "kind"),
    [(doubles, pa.float64()), (texts, pa.string()), (decimals, pa.decimal128(10, 2))],
    ids=["doubles", "texts", "decimals"],
)
@given(data=st.data())
def test_comparisons(values: st.SearchStrategy[Any], kind: pa.DataType, data: st.DataObject) -> None:
    left, right = data.draw(pairs(values))
    for operator, function in COMPARISONS.items():
        assert run(Call(operator, (A, B)), left, right, kind) == by_row(function, left, right), operator


@given(pairs(doubles))
def test_null_safe_equality_is_never_null(rows: tuple[list[Any], list[Any]]) -> None:
    expected = [
        (a is None and b is None) or (a is not None and b is not None and order(a) == order(b))
        for a, b in zip(*rows, strict=True)
    ]
    assert run(Call("<=>", (A, B)), *rows, pa.float64()) == expected


@given(pairs(small))
def test_arithmetic(rows: tuple[list[Any], list[Any]]) -> None:
    for operator, function in (
        ("+", lambda a, b: a + b),
        ("-", lambda a, b: a - b),
        ("*", lambda a, b: a * b),
    ):
        assert run(Call(operator, (A, B)), *rows, pa.int32(), pa.int64()) == by_row(function, *rows)
    guard = Call("<>", (B, Literal(0, "int")))
    for operator, divide in (
        ("/", lambda a, b: a / b if b else None),
        ("%", lambda a, b: math.fmod(a, b) if b else None),
    ):
        guarded = Call("case", (guard, Call(operator, (A, B)), VOID))
        assert run(guarded, *rows, pa.int64()) == by_row(divide, *rows)


@given(pairs(booleans))
def test_three_valued_logic(rows: tuple[list[Any], list[Any]]) -> None:
    both = [
        False if a is False or b is False else None if a is None or b is None else True
        for a, b in zip(*rows, strict=True)
    ]
    either = [
        True if a is True or b is True else None if a is None or b is None else False
        for a, b in zip(*rows, strict=True)
    ]
    assert run(Call("and", (A, B)), *rows, pa.bool_()) == both
    assert run(Call("or", (A, B)), *rows, pa.bool_()) == either
    assert run(Call("not", (Call("and", (A, B)),)), *rows, pa.bool_()) == [
        None if value is None else not value for value in both
    ]
    assert run(Call("is null", (Call("or", (A, B)),)), *rows, pa.bool_()) == [
        value is None for value in either
    ]


@given(pairs(doubles))
def test_coalesce_least_greatest(rows: tuple[list[Any], list[Any]]) -> None:
    present = [[v for v in pair if v is not None] for pair in zip(*rows, strict=True)]
    choices: dict[str, Callable[[list[Any]], Any]] = {
        "coalesce": lambda values: values[0],
        "least": lambda values: min(values, key=order),
        "greatest": lambda values: max(values, key=order),
    }
    for function, choose in choices.items():
        got = run(Call(function, (A, B)), *rows, pa.float64())
        wanted = [choose(values) if values else None for values in present]
        assert [v if v is None else order(v) for v in got] == [v if v is None else order(v) for v in wanted]


@given(pairs(texts))
def test_strings(rows: tuple[list[Any], list[Any]]) -> None:
    joined = by_row(lambda a, b: a + b, *rows)
    concat = Call("||", (A, B))
    assert run(concat, *rows, pa.string()) == joined
    for function, python in (("upper", str.upper), ("lower", str.lower), ("length", len)):
        expected = [None if text is None else python(text) for text in joined]
        assert run(Call(function, (concat,)), *rows, pa.string()) == expected


def like(text: str, pattern: str) -> bool:
    """LIKE by its definition, without an escape."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[start:], pattern[1:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(text[1:], pattern[1:])


@given(pairs(texts), st.text("aA%_.\n", max_size=5))
def test_like(rows: tuple[list[Any], list[Any]], pattern: str) -> None:
    expression = Call("like", (Call("concat", (A, B)), Literal(pattern, "string")))
    assert run(expression, *rows, pa.string()) == by_row(lambda a, b: like(a + b, pattern), *rows)


@given(pairs(small), st.lists(small, min_size=2, max_size=3))
def test_a_null_in_a_list_makes_no_match_unknown(
    rows: tuple[list[Any], list[Any]], listed: list[Any]
) -> None:
    total = Call("+", (A, B))
    choices = tuple(VOID if v is None else Literal(v, "int") for v in listed)
    unknown = None if None in listed else False
    expected = by_row(lambda a, b: True if a + b in listed else unknown, *rows)
    assert run(Call("in", (total, *choices)), *rows, pa.int32()) == expected


def test_types_follow_spark() -> None:
    types = {A: pa.int8(), B: pa.float32()}
    assert result_type(Call("+", (A, A)), types.__getitem__) == pa.int8()
    assert result_type(Call("+", (A, Literal(1, "int"))), types.__getitem__) == pa.int32()
    assert result_type(Call("+", (A, B)), types.__getitem__) == pa.float64()
    assert result_type(Call("+", (B, B)), types.__getitem__) == pa.float32()
    assert result_type(Call("/", (A, A)), types.__getitem__) == pa.float64()
    wide = Call("coalesce", (A, Literal(Decimal("1.25"), "decimal(3,2)")))
    assert result_type(wide, types.__getitem__) == pa.decimal128(5, 2)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (Call("/", (A, B)), "division by zero"),
        (Call("%", (A, B)), "remainder by zero"),
        (Call("+", (A, Literal(1, "bigint"))), "arithmetic overflow in bigint"),
        (Call("*", (A, A)), "arithmetic overflow in bigint"),
        (Cast(A, "int"), "cast overflow"),
        (Cast(Call("/", (A, Literal(0.5, "double"))), "int"), "cast overflow"),
        (Cast(A, "decimal(18,0)"), "decimal(18,0) does not hold the value"),
        (Cast(A, "timestamp"), "CAST of bigint to timestamp is not supported"),
        (Call("and", (A, TRUE)), "a condition is boolean, not bigint"),
        (Call("upper", (A,)), "upper of bigint"),
    ],
)
def test_errors_name_the_expression(expression: Expression, words: str) -> None:
    with pytest.raises(ViewError) as refused:
        run(expression, [2**63 - 1], [0], pa.int64())
    assert words in str(refused.value)
    assert "(in " in str(refused.value)


def test_no_row_fails_that_spark_would_not_evaluate() -> None:
    quotient = Call("/", (A, B))
    positive = Call(">", (quotient, Literal(0, "int")))
    left, right = [4, 1, None], [2, 0, 0]
    guard = Call("<>", (B, Literal(0, "int")))
    assert run(Call("and", (guard, positive)), left, right, pa.int64()) == [True, False, False]
    either = Call("or", (Call("=", (B, Literal(0, "int"))), positive))
    assert run(either, left, right, pa.int64()) == [True, True, True]
    assert run(Call("coalesce", (A, quotient)), [1, 2], [0, 0], pa.int64()) == [1.0, 2.0]


def test_guards_hold_for_decimals_and_for_values_of_a_list() -> None:
    kind = pa.decimal128(10, 2)
    left, right = [Decimal(4), Decimal(1), None], [Decimal(8), Decimal(0), Decimal(0)]
    zero = Literal(0, "int")
    quotient, rest = Call("/", (A, B)), Call("%", (A, B))
    guarded = Call("case", (Call("<>", (B, zero)), Call("+", (quotient, rest)), VOID))
    assert run(guarded, left, right, kind) == [Decimal("4.5"), None, None]
    listed = Call("in", (B, zero, rest))
    assert run(listed, left, right, kind) == [False, True, True]
    with pytest.raises(ViewError, match=r"remainder by zero.*\(in input1.c0 IN \("):
        run(Call("in", (B, rest)), left, right, kind)


def test_a_literal_has_its_own_digits_beside_a_decimal() -> None:
    types = {A: pa.decimal128(10, 2), B: pa.int32()}
    assert result_type(Call("*", (A, B)), types.__getitem__) == pa.decimal128(21, 2)
    assert result_type(Call("*", (A, Literal(100, "int"))), types.__getitem__) == pa.decimal128(14, 2)
    assert result_type(Call("*", (A, Cast(Literal(100, "int"), "int"))), types.__getitem__) == pa.decimal128(
        21, 2
    )
    assert result_type(Call("+", (A, VOID)), types.__getitem__) == pa.decimal128(11, 2)


def test_what_spark_rounds_or_mistakes_is_refused() -> None:
    wide, limit = pa.decimal128(35, 2), Literal(Decimal("1e19"), "decimal(20,0)")
    for negated in (Call("negative", (A,)), Call("abs", (A,))):
        assert run(negated, [Decimal(-1)], [None], pa.decimal128(34, 2)) == [Decimal(1)]
        with pytest.raises(ViewError, match="subtract it from 0 instead"):
            result_type(negated, lambda _: wide)
    assert run(Call("=", (A, limit)), [1], [None], pa.int64()) == [False]
    with pytest.raises(ViewError, match="outside bigint"):
        result_type(Call("<", (A, limit)), lambda _: pa.int64())
    assert result_type(Call("<", (A, limit)), lambda _: wide) == pa.bool_()


def test_intervals_follow_the_calendar() -> None:
    def plus(amount: int, unit: str) -> Call:
        return Call("+", (Call("coalesce", (A, B)), Literal(amount, f"interval {unit}")))

    days = [date(2024, 1, 31), None, date(2023, 12, 31)]
    assert run(plus(1, "month"), days, days, pa.date32()) == [date(2024, 2, 29), None, date(2024, 1, 31)]
    assert run(plus(-1, "year"), days[:1], days[:1], pa.date32()) == [date(2023, 1, 31)]
    assert run(plus(2, "week"), days[:1], days[:1], pa.date32()) == [date(2024, 2, 14)]
    local = [datetime(1969, 12, 31, 23, 59, 59, 999_999)]
    assert run(plus(2, "month"), local, local, pa.timestamp("us")) == [
        datetime(1970, 2, 28, 23, 59, 59, 999_999)
    ]
    instant = [datetime(2024, 3, 31, 0, 30, tzinfo=UTC)]
    zoned = pa.timestamp("us", "UTC")
    assert run(plus(23, "hour"), instant, instant, zoned) == [datetime(2024, 3, 31, 23, 30, tzinfo=UTC)]
    for amount, unit in ((24, "hour"), (1, "day"), (1, "month")):
        with pytest.raises(ViewError, match="session's time zone"):
            run(plus(amount, unit), instant, instant, zoned)
    with pytest.raises(ViewError, match="out of range"):
        run(plus(1, "second"), [2**63 - 1], [None], pa.timestamp("us"))
    with pytest.raises(ViewError, match="plus 12 months is out of range"):
        run(plus(12, "month"), [2**63 - 1], [None], pa.timestamp("us"))
    with pytest.raises(ViewError, match=r"INTERVAL '3' HOUR"):
        run(plus(3, "hour"), days, days, pa.date32())


def test_a_decimal_is_written_in_plain_digits() -> None:
    tiny = [Decimal("-1e-10"), Decimal(0), Decimal("12.5"), None]
    text = Cast(Call("coalesce", (A, B)), "string")
    expected = ["-0.0000000001", "0.0000000000", "12.5000000000", None]
    assert run(text, tiny, tiny, pa.decimal128(12, 10)) == expected


def test_casts_that_spark_makes_through_doubles_are_refused() -> None:
    whole = Cast(A, "int")
    assert run(whole, [Decimal("-1.9")], [None], pa.decimal128(15, 1)) == [-1]
    assert run(whole, [Decimal(7)], [None], pa.decimal128(38, 0)) == [7]
    assert run(Cast(A, "bigint"), [Decimal("1.9")], [None], pa.decimal128(38, 30)) == [1]
    with pytest.raises(ViewError, match=r"CAST of decimal\(16,1\) to int is not supported"):
        result_type(whole, lambda _: pa.decimal128(16, 1))


def test_casts() -> None:
    total = Call("+", (A, B))
    assert run(Cast(total, "string"), [1, None], [2, 3], pa.int32()) == ["3", None]
    assert run(Cast(total, "int"), [1.9, -1.9], [0.0, 0.0], pa.float64()) == [1, -1]
    assert run(Cast(total, "tinyint"), [1], [2], pa.int64()) == [3]
    day = Cast(Call("coalesce", (A, B)), "string")
    assert run(day, [None], [date(2020, 1, 2)], pa.date32()) == ["2020-01-02"]


def test_big_integers_are_compared_exactly_with_integers_and_as_double_with_doubles() -> None:
    assert run(Call("=", (A, B)), [2**53 + 1], [2**53], pa.int64()) == [False]
    assert run(Call("=", (A, B)), [2**53 + 1], [2.0**53], pa.int64(), pa.float64()) == [True]
    assert run(Call("<", (A, B)), [2**53], [Decimal(2**53 + 1)], pa.int64(), pa.decimal128(20, 0)) == [True]


def test_dictionary_and_large_strings_are_read() -> None:
    arrays = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["x", None], pa.large_string())]
    assert evaluate(Call("||", (A, B)), lambda ref: arrays[ref.input], 2).to_pylist() == ["ax", None]


def test_errors_show_columns_as_the_reader_knows_them() -> None:
    names = {A: "p.price", B: "[v: upper(shares)]"}
    arrays = [pa.array([1]), pa.array([0])]
    ratio = Call("/", (A, B))
    with pytest.raises(ViewError, match=r"\(in p\.price / \[v: upper\(shares\)\]\)"):
        evaluate(ratio, lambda ref: arrays[ref.input], 1, names.__getitem__)
    with pytest.raises(ViewError, match=r"string.*\(in p\.price / \[v"):
        result_type(ratio, lambda _: pa.string(), names.__getitem__)
