"""Quotas follow from measured rates, and what is parked is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from kit.snapshots import placement_snapshot
from spillway.manager.skew_buffer import SkewLimits, quotas
from spillway.policy.placement.snapshot import PlacementSnapshot

BUFFER_BYTES = 1 << 20
LIMITS = SkewLimits()


def snapshot(
    busy: list[float], rows: list[int], pending: list[int], row_bytes: int = 10
) -> PlacementSnapshot:
    return placement_snapshot(
        [[{"bytes": count * row_bytes, "rows": count, "sampled_rows": count}] for count in rows],
        [
            {"busy_seconds": seconds, "pending_rows": parked, "pending_bytes": parked * row_bytes}
            for seconds, parked in zip(busy, pending, strict=True)
        ],
        now=0.0,
        epoch=9,
    )


def test_processors_of_one_speed_have_no_quota() -> None:
    even = snapshot([1.0, 1.1], [9000, 9000], [0, 0])
    assert quotas(even, {0: [9000], 1: [9000]}, BUFFER_BYTES, LIMITS) == {}


def test_a_slow_processor_takes_in_what_it_manages_while_the_others_work() -> None:
    slow = snapshot([1.0, 1.0, 4.0], [10_000] * 3, [0] * 3)
    given_ = quotas(slow, {0: [10_000], 1: [10_000], 2: [10_000]}, BUFFER_BYTES, LIMITS)
    assert given_ == {2: int(LIMITS.slack * 2.0 / 0.0004)}


def test_a_full_buffer_lets_out_as_much_as_comes_in() -> None:
    full = snapshot([1.0, 4.0], [10_000] * 2, [0, BUFFER_BYTES // 10])
    assert quotas(full, {0: [10_000], 1: [10_000]}, BUFFER_BYTES, LIMITS)[1] >= 10_000 - 1


def test_nobody_parks_without_a_buffer_or_alone_or_before_anything_was_measured() -> None:
    slow = snapshot([1.0, 4.0], [10_000] * 2, [0, 0])
    assert quotas(slow, {0: [10_000], 1: [10_000]}, 0, LIMITS) == {}
    assert quotas(snapshot([4.0], [10_000], [0]), {0: [10_000]}, BUFFER_BYTES, LIMITS) == {}
    assert quotas(slow, {}, BUFFER_BYTES, LIMITS) == {}


@given(
    st.lists(st.floats(0.01, 10), min_size=2, max_size=5),
    st.integers(LIMITS.minimum_rows, 100_000),
    st.integers(1, 60),
)
def test_what_is_parked_is_bounded_whatever_the_speeds(
    seconds: list[float], arriving: int, epochs: int
) -> None:
    pending = [0] * len(seconds)
    for _ in range(epochs):
        made = snapshot([each * arriving / 10_000 for each in seconds], [arriving] * len(seconds), pending)
        limits = quotas(made, {number: [arriving] for number in range(len(seconds))}, BUFFER_BYTES, LIMITS)
        pending = [
            max(0, parked + arriving - limits.get(number, parked + arriving))
            for number, parked in enumerate(pending)
        ]
        assert max(pending) * 10 <= BUFFER_BYTES + 10
