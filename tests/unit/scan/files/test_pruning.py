"""A row group is excluded only if no row of it can pass; checked against all rows."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.plan.expression import Call, Cast, ColumnRef, Expression, Literal
from spillway.scan.files import Bounds, may_hold

X, S, MIXED = ColumnRef(0, 0), ColumnRef(0, 1), ColumnRef(0, 2)
Row = tuple[int | None, str | None]


def bounds_of(values: Sequence[int | str | None]) -> Bounds:
    known = [value for value in values if value is not None]
    nulls = len(values) - len(known)
    return Bounds(min(known), max(known), nulls) if known else Bounds(nulls=nulls)


def truth(condition: Expression, row: Row) -> bool | None:
    """SQL's answer for one row."""
    if isinstance(condition, Literal):
        return condition.value  # type: ignore[return-value]
    assert isinstance(condition, Call)
    function, arguments = condition.function, condition.arguments
    if function in ("and", "or"):
        answers = [truth(argument, row) for argument in arguments]
        decisive = function == "or"
        return decisive if decisive in answers else None if None in answers else not decisive
    if function == "not":
        answer = truth(arguments[0], row)
        return None if answer is None else not answer
    values = [row[part.column] if isinstance(part, ColumnRef) else part.value for part in arguments]  # type: ignore[union-attr]
    if function == "is null":
        return values[0] is None
    left, right = values
    if function == "<=>":
        return left == right
    if left is None or right is None:
        return None
    return {
        "=": left == right, "<>": left != right, "<": left < right, "<=": left <= right,  # type: ignore[operator]
        ">": left > right, ">=": left >= right,  # type: ignore[operator]
    }[function]  # fmt: skip


NUMBERS, TEXTS = st.integers(-3, 3), st.sampled_from(["", "a", "b", "ä", "z\U0001f600"])
OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    on_text = draw(st.booleans())
    column = S if on_text else X
    value = draw(st.none() | (TEXTS if on_text else NUMBERS))
    literal = Literal(value, "void" if value is None else "string" if on_text else "int")
    sides = (column, literal) if draw(st.booleans()) else (literal, column)
    return Call(draw(OPERATORS), sides)


CONDITIONS = st.recursive(
    comparisons()
    | st.sampled_from(
        [Call("is null", (X,)), Call("is null", (S,)), Literal(True, "boolean"), Literal(None, "void")]
    ),
    lambda inner: st.one_of(
        st.builds(lambda left, right: Call("and", (left, right)), inner, inner),
        st.builds(lambda left, right: Call("or", (left, right)), inner, inner),
        st.builds(lambda argument: Call("not", (argument,)), inner),
    ),
    max_leaves=4,
)
ROWS = st.lists(st.tuples(st.none() | NUMBERS, st.none() | TEXTS), min_size=1, max_size=4)


@given(CONDITIONS, ROWS, st.booleans())
def test_no_row_that_passes_is_lost(condition: Expression, rows: list[Row], known: bool) -> None:
    bounds = {X: bounds_of([row[0] for row in rows]), S: bounds_of([row[1] for row in rows])} if known else {}
    if any(truth(condition, row) is True for row in rows):
        assert may_hold(condition, bounds.get, len(rows))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (Call("=", (X, Literal(5, "int"))), True),
        (Call("=", (X, Literal(9, "int"))), False),
        (Call("<", (X, Literal(2, "int"))), False),
        (Call("<=", (X, Literal(2, "int"))), True),
        (Call(">", (X, Literal(8, "bigint"))), False),
        (Call(">=", (X, Literal(8, "bigint"))), True),
        (Call(">", (Literal(2, "int"), X)), False),
        (Call("or", (Call("=", (X, Literal(1, "int"))), Call("=", (X, Literal(9, "int"))))), False),
        (Call("in", (X, Literal(1, "int"), Literal(9, "int"))), False),
        (Call("in", (X, Literal(1, "int"), Literal(8, "int"))), True),
        (Call("is null", (X,)), False),
        (Call("not", (Call("is null", (S,)),)), False),
        (Call("=", (S, Literal("a", "string"))), False),
        (Call("<", (X, Literal(1.5, "double"))), True),
        (Call(">", (Cast(X, "bigint"), Literal(9, "bigint"))), True),
        (Call("=", (X, Literal(None, "void"))), False),
        (Call("=", (S, Literal(None, "void"))), False),
        (Call("<=>", (S, Literal(None, "void"))), True),
        (Call("<=>", (X, Literal(None, "void"))), False),
        (Call("is null", (MIXED,)), True),
        (Call("not", (Call("is null", (MIXED,)),)), True),
        (Call("=", (MIXED, Literal(5, "int"))), True),
    ],
)
def test_what_is_excluded(condition: Expression, kept: bool) -> None:
    """A column with 2 to 8 and no nulls, one of nulls only, and one with both."""
    bounds = {X: Bounds(2, 8, 0), S: Bounds(nulls=10), MIXED: Bounds(2, 8, 4)}
    assert may_hold(condition, bounds.get, 10) is kept
