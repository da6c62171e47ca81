"""Expected rows of joins: keys that belong together, keys that do not, and what is not known."""

import pytest

from spillway.plan.rules.input_statistics import InputStatistics
from spillway.plan.rules.join_sizes import RESIDUAL_SHARE, JoinSizes

SUPPLIER, PART = 0, 1
LINEITEM = InputStatistics(6e6, 6e6, {SUPPLIER: 1e4, PART: 2e5})
PARTSUPP = InputStatistics(8e5, 8e5, {SUPPLIER: 1e4, PART: 2e5})


def sizes(*inputs: InputStatistics, **residuals: tuple[int, ...]) -> JoinSizes:
    return JoinSizes(inputs, [frozenset(input_.distinct) for input_ in inputs], **residuals)


def test_columns_that_belong_together_have_as_many_pairs_as_there_are_rows() -> None:
    """`partsupp` has four suppliers of each part, not all ten thousand."""
    joined = sizes(LINEITEM, PARTSUPP)
    assert joined.rows(0b11) == pytest.approx(6e6)
    assert joined.candidates([1, 2], frozenset({SUPPLIER, PART})) == pytest.approx(6e6)
    assert joined.candidates([1, 2], frozenset({SUPPLIER})) == pytest.approx(480e6)
    assert joined.candidates([1, 2], frozenset({PART})) == pytest.approx(24e6)


def test_columns_of_different_inputs_are_independent() -> None:
    """Customer and supplier of an order are of one nation in one case of 25."""
    customers = InputStatistics(1e5, 1e5, {0: 1e5, 1: 25})
    lines = InputStatistics(6e6, 6e6, {0: 1e5, 2: 1e4})
    suppliers = InputStatistics(1e4, 1e4, {1: 25, 2: 1e4})
    assert sizes(customers, lines, suppliers).rows(0b111) == pytest.approx(6e6 / 25)


def test_a_filtered_input_keeps_its_domain() -> None:
    """A twentieth of the parts joins a twentieth of the lines."""
    parts = InputStatistics(1e4, 2e5, {PART: 2e5})
    assert sizes(parts, LINEITEM).rows(0b11) == pytest.approx(3e5)
    assert sizes(parts, PARTSUPP, LINEITEM).rows(0b111) == pytest.approx(3e5)


def test_a_set_has_one_size_whatever_the_order_of_its_joins() -> None:
    three = [
        InputStatistics(10, 10, {0: 10}),
        InputStatistics(50, 50, {0: 5}),
        InputStatistics(40, 40, {0: 2}),
    ]
    assert sizes(*three).rows(0b111) == sizes(*reversed(three)).rows(0b111) == pytest.approx(400)


def test_numbers_that_are_not_known_are_those_of_the_class_or_of_its_smallest_input() -> None:
    known = [InputStatistics(100, 100, {0: 20}), InputStatistics(900, 900, {})]
    assert JoinSizes(known, [frozenset({0})] * 2).rows(0b11) == pytest.approx(100 * 900 / 20)
    unknown = [InputStatistics(100, 100, {}), InputStatistics(900, 900, {})]
    assert JoinSizes(unknown, [frozenset({0})] * 2).rows(0b11) == pytest.approx(900)


def test_a_residual_predicate_counts_where_all_its_inputs_are_joined() -> None:
    plain, tested = sizes(LINEITEM, PARTSUPP), sizes(LINEITEM, PARTSUPP, residuals=(0b11, 0b100))
    assert tested.rows(0b11) == pytest.approx(plain.rows(0b11) * RESIDUAL_SHARE)
    assert tested.rows(0b1) == plain.rows(0b1)
    assert tested.candidates([1, 2], frozenset({SUPPLIER})) == plain.candidates([1, 2], frozenset({SUPPLIER}))


def test_an_empty_input_does_not_hide_the_others() -> None:
    empty = InputStatistics(0, 0, {SUPPLIER: 0, PART: 0})
    assert sizes(empty, LINEITEM).rows(0b11) > 0
