"""How large the next epoch is: within bounds, larger while that helps, small enough for the latency goal."""

from hypothesis import given
from hypothesis import strategies as st

from spillway.policy.epoch_size import (
    BEHIND_EPOCHS,
    SETTLED,
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


def test_a_backlog_is_worked_off_in_epochs_that_double() -> None:
    sizes = run(0.3, 1e-6, LIMITS, live=False)
    assert sizes[:4] == [65_536, 131_072, 262_144, 524_288]
    assert max(sizes) == LIMITS.most_rows


def test_epochs_stop_growing_when_that_does_not_help() -> None:
    sizes = run(0.001, 1e-5, LIMITS, live=False)
    assert sizes[-1] == sizes[-10] <= 4 * 65_536


def test_one_disturbed_epoch_does_not_end_the_growth() -> None:
    size = first_size(LIMITS)
    size = next_size(size, size.rows, MeasuredEpoch(size.rows, 0.4), LIMITS)
    grown = size.rows
    size = next_size(size, size.rows, MeasuredEpoch(size.rows, 9.0), LIMITS)
    assert size.rows == grown
    size = next_size(size, size.rows, MeasuredEpoch(size.rows, 0.5), LIMITS)
    assert size.rows == 2 * grown


def test_a_live_query_meets_its_latency() -> None:
    for fixed, per_row in ((0.1, 1e-5), (0.05, 1e-6), (0.2, 1e-4)):
        rows = run(fixed, per_row, LIMITS, live=True)[-1]
        assert 0.25 <= fixed + per_row * rows <= 0.7 or rows in (1_024, LIMITS.most_rows)


def test_a_live_query_that_falls_behind_takes_more() -> None:
    size = EpochSize(rows=500_000, best_rate=1.0, misses=SETTLED, live_rows=10_000)
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
