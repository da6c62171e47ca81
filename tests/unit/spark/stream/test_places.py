"""Processors stay on their executors, and those of a lost one are spread over the others."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from spillway.spark.stream.places import spread

NAMES = st.lists(st.sampled_from("012345678"), unique=True, min_size=1, max_size=6)


@given(NAMES, NAMES, st.integers(1, 12), st.integers(1, 12))
def test_who_can_stay_stays_and_the_others_are_spread(
    before: list[str], after: list[str], first: int, second: int
) -> None:
    chosen = spread([], before, first)
    load = Counter(chosen)
    assert max(load.values()) - min(load[executor] for executor in before) <= 1
    moved = spread(chosen, after, second)
    assert len(moved) == second and set(moved) <= set(after)
    for old, new in zip(chosen, moved, strict=False):
        assert old == new or old not in after
    assert spread(moved, after, second) == moved
