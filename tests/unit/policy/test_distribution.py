"""Initial distributions: every group somewhere, every processor with a group, shares kept."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import JobError
from spillway.policy.distribution import distributed, graph_placement


def test_golden() -> None:
    assert distributed("even", 8, 3) == (0, 0, 0, 1, 1, 1, 2, 2)
    assert distributed([4, 1, 1], 6, 3) == (0, 0, 0, 0, 1, 2)
    assert distributed([1, 100], 4, 2) == (0, 1, 1, 1)
    assert distributed("hash", 12, 3) == (0, 0, 0, 2, 1, 1, 2, 2, 0, 1, 2, 1)


def test_skewed_as_in_figure_6_18() -> None:
    assert sorted(Counter(distributed([4, 1, 1], 256, 3)).values()) == [42, 43, 171]


sizes = st.integers(1, 20).flatmap(lambda n: st.tuples(st.integers(n, 300), st.just(n)))


@given(sizes, st.sampled_from(["even", "hash"]))
def test_even_and_by_hash_differ_by_one_group_at_most(size: tuple[int, int], name: str) -> None:
    counts = Counter(distributed(name, *size))
    assert set(counts) == set(range(size[1]))
    assert max(counts.values()) - min(counts.values()) <= 1


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.integers(0, 300))
def test_shares_are_kept_to_within_a_few_groups(shares: list[float], more: int) -> None:
    groups = len(shares) + more
    placement = distributed(shares, groups, len(shares))
    counts = Counter(placement)
    assert len(placement) == groups
    assert list(placement) == sorted(placement)
    assert set(counts) == set(range(len(shares)))
    for processor, share in enumerate(shares):
        assert abs(counts[processor] - groups * share / sum(shares)) <= len(shares) + 1


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        ("odd", 'must be "even", "hash" or a list of shares'),
        ([1, 2], "2 shares for 3 processors"),
        ([1, 0, 1], "above 0"),
        ([1, float("nan"), 1], "above 0"),
        ([1, True, 1], "above 0"),
        (["1", 1, 1], "above 0"),
    ],
)
def test_bad_distributions_are_refused(distribution: object, message: str) -> None:
    with pytest.raises(JobError, match=message):
        distributed(distribution, 8, 3)  # type: ignore[arg-type]


def test_every_processor_needs_a_group() -> None:
    with pytest.raises(JobError, match="needs a group for each processor"):
        distributed("even", 2, 3)


def test_operators_with_few_groups_share_the_processors_out_in_turn() -> None:
    assert graph_placement("even", (4, 1, 2, 6, 1), 3) == (0, 0, 1, 2, 0, 1, 2, 0, 0, 1, 1, 2, 2, 0)
    assert graph_placement([1, 3], (4, 1, 1), 2) == (0, 1, 1, 1, 0, 1)
    assert graph_placement("hash", (12,), 3) == distributed("hash", 12, 3)
