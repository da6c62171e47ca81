"""A sampled lineage is right on average, and as near as the error that is shown says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.state.step.lineage import LineageCounter, typical_error

GROUPS = 5


@given(st.lists(st.lists(st.integers(0, GROUPS - 1), max_size=20), max_size=8), st.integers(0, 9))
def test_all_rows_are_counted_unless_a_sample_is_asked_for(chunks: list[list[int]], sequence: int) -> None:
    counter = LineageCounter(GROUPS, sequence=sequence)
    counted = sum((counter.count(np.array(chunk, dtype=np.int64)) for chunk in chunks), np.zeros(GROUPS))
    rows = [group for chunk in chunks for group in chunk]
    assert counted.tolist() == np.bincount(np.array(rows, dtype=np.int64), minlength=GROUPS).tolist()


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(2, 7), st.integers(0, 9))
def test_one_row_in_so_many_is_counted_however_rows_come(
    sizes: list[int], one_in: int, sequence: int
) -> None:
    counter = LineageCounter(1, one_in, sequence)
    counted = sum(int(counter.count(np.zeros(size, dtype=np.int64))[0]) for size in sizes)
    assert abs(counted - sum(sizes)) < one_in
    assert counted % one_in == 0


def test_many_small_epochs_are_not_counted_as_large_ones() -> None:
    rows, one_in, epochs = 3, 16, 4000
    counted = sum(
        int(LineageCounter(1, one_in, sequence).count(np.zeros(rows, dtype=np.int64))[0])
        for sequence in range(epochs)
    )
    assert counted == pytest.approx(rows * epochs, rel=0.05)


@pytest.mark.parametrize("one_in", [4, 32])
def test_the_error_is_the_one_that_is_shown(one_in: int) -> None:
    random = np.random.default_rng(3)
    rows = random.integers(0, GROUPS, 20_000)
    errors = []
    for sequence in range(300):
        estimate = LineageCounter(GROUPS, one_in, sequence).count(random.permutation(rows))
        errors += (estimate / np.bincount(rows) - 1).tolist()
    shown = typical_error(np.bincount(rows).tolist(), one_in)
    assert float(np.std(errors)) == pytest.approx(shown, rel=0.25)
    assert abs(float(np.mean(errors))) < shown / 5


def test_there_is_no_error_without_a_sample() -> None:
    assert typical_error([10, 20], 1) == 0.0
    assert typical_error([], 8) == 0.0
