"""How large the next epoch is: within bounds, larger while that helps, small enough for the latency goal."""

from hypothesis import given
from hypothesis import strategies as st

from spillway.policy.epoch_size import (
    BACKLOG_SECONDS,
    BEHIND_EPOCHS,
    EpochSize,
    MeasuredEpoch,
    SizeLimits,
    first_size,
    next_size,
)

LIMITS = SizeLimits(most_rows=1_000_000, latency_seconds=0.5)


def run(seconds_of: float, per_row: float, limits: SizeLimits, *, live: bool, epochs: int = 30) -> list[int]:
    """Sizes of epochs that take a fixed time and a time per row, while more than enough waits."""
    size, sizes = first_size(limits), []
    for _ in range(epochs):
        backlog = limits.most_rows if live else 1e12
        rows = size.wanted(backlog if not live else size.live_rows, live=live)
        sizes.append(rows)
        size = next_size(size, rows, MeasuredEpoch(rows, seconds_of + per_row * rows), limits)
    return sizes


def test_epochs_of_a_backlog_grow_to_their_bound() -> None:
    sizes = run(0.3, 1e-6, LIMITS, live=False)
    assert sizes[:2] == [65_536, 262_144]
    assert min(sizes[3:]) == LIMITS.most_rows


def test_epochs_of_a_backlog_take_no_longer_than_they_may() -> None:
    for per_row in (1e-5, 1e-4, 1e-3):
        sizes = run(0.1, per_row, LIMITS, live=False)
        assert 0.5 * BACKLOG_SECONDS <= 0.1 + per_row * sizes[-1] <= 1.1 * BACKLOG_SECONDS


def test_an_epoch_that_had_more_rows_than_wanted_says_so() -> None:
    """A file is never split."""
    size = first_size(LIMITS)
    assert next_size(size, size.rows, MeasuredEpoch(150_000, 0.2), LIMITS).rows == 600_000


def test_a_live_query_meets_its_latency() -> None:
    for fixed, per_row in ((0.1, 1e-5), (0.05, 1e-6), (0.2, 1e-4)):
        rows = run(fixed, per_row, LIMITS, live=True)[-1]
        assert 0.25 <= fixed + per_row * rows <= 0.7 or rows in (1_024, LIMITS.most_rows)


def test_a_live_query_that_falls_behind_takes_more() -> None:
    size = EpochSize(rows=500_000, live_rows=10_000)
    assert size.wanted(BEHIND_EPOCHS * 10_000, live=True) == 10_000
    assert size.wanted(BEHIND_EPOCHS * 10_000 + 1, live=True) == 500_000
    assert size.wanted(1, live=False) == 500_000


def test_a_small_epoch_says_nothing_about_the_size() -> None:
    size = first_size(LIMITS)
    assert next_size(size, size.rows, MeasuredEpoch(100, 0.4), LIMITS).rows == size.rows
    assert next_size(size, size.rows, MeasuredEpoch(0, 0.4), LIMITS) == size


def test_the_bound_holds_from_the_first_epoch_on() -> None:
    assert first_size(SizeLimits(10, 1.0)).rows == 10
    assert run(0.3, 1e-6, SizeLimits(10, 1.0), live=False) == [10] * 30


@given(
    st.integers(1, 2_000_000),
    st.floats(0.001, 10),
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 20), st.booleans()), max_size=40),
)
def test_sizes_stay_within_their_bounds(
    most_rows: int, latency: float, epochs: list[tuple[float, float, bool]]
) -> None:
    limits = SizeLimits(most_rows, latency)
    size = first_size(limits)
    for share, seconds, live in epochs:
        rows = size.wanted(share * most_rows, live=live)
        assert 1 <= rows <= most_rows
        size = next_size(size, rows, MeasuredEpoch(int(rows * share), seconds), limits)
