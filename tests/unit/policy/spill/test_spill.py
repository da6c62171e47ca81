"""Spill policies: golden choices, and what holds for every snapshot."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import BudgetError
from spillway.manager.budget import Budget, Budgets
from spillway.manager.spill import SpillManager
from spillway.model import MINIMUM_BYTES
from spillway.policy.spill.registry import SPILL_POLICIES
from spillway.policy.spill.snapshot import GroupStatistics, SpillSnapshot
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import Manifest
from spillway.state.orders.orders import Limits

GROUPS = (
    GroupStatistics(0, bytes=100, results=400, age_epochs=9, idle_epochs=1, recent_results=1.0),
    GroupStatistics(1, bytes=100, results=100, age_epochs=9, idle_epochs=30, recent_results=90.0),
    GroupStatistics(2, bytes=100, results=200, age_epochs=9, idle_epochs=20, recent_results=50.0),
    GroupStatistics(3, bytes=100, results=0, age_epochs=0, idle_epochs=1, recent_results=0.0),
)


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ("least-productive", (1, 2)),
        ("most-productive", (0, 2)),
        ("least-recent", (1, 2)),
        ("recent-history", (0, 2)),
    ],
)
def test_who_goes_first(policy: str, chosen: tuple[int, ...]) -> None:
    """Group 3 is too young to be judged, whatever the policy."""
    assert tuple(SPILL_POLICIES[policy](SpillSnapshot(GROUPS, wanted_bytes=150), Random(1))) == chosen


TREE = (
    # Low in the tree, small, many results of the view, but much is kept of it further up.
    GroupStatistics(0, 100, 900, 9, 1, outputs=1000, inter_bytes=900, height=2),
    GroupStatistics(1, 100, 500, 9, 1, outputs=400, inter_bytes=100, height=2),
    GroupStatistics(2, 200, 50, 9, 1, outputs=500, inter_bytes=0, height=1),
    GroupStatistics(3, 200, 400, 9, 1, outputs=400, inter_bytes=0, height=0),
)


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ("local-output", (2,)),
        ("global-output", (3,)),
        ("global-output-penalty", (3,)),
        ("global-output-penalty-paper", (0,)),
        ("global-output-cleanup", (3,)),
    ],
)
def test_who_goes_first_of_a_tree(policy: str, chosen: tuple[int, ...]) -> None:
    assert tuple(SPILL_POLICIES[policy](SpillSnapshot(TREE, wanted_bytes=100), Random(1))) == chosen


def test_what_is_kept_above_counts_for_a_fifth() -> None:
    """Group 0 has twice the results per byte of group 1, and nine times as much is kept of it above."""
    low = TREE[:2]
    orders = {
        name: tuple(SPILL_POLICIES[name](SpillSnapshot(low, wanted_bytes=200), Random(1)))
        for name in ("global-output", "global-output-penalty", "global-output-penalty-paper")
    }
    assert orders == {
        "global-output": (1, 0),
        "global-output-penalty": (1, 0),  # 1000 / 280 against 400 / 120
        "global-output-penalty-paper": (0, 1),
    }
    much = (replace(low[0], inter_bytes=1200), low[1])
    chosen = SPILL_POLICIES["global-output-penalty"](SpillSnapshot(much, wanted_bytes=100), Random(1))
    assert tuple(chosen) == (0,)
    little = (replace(low[0], inter_bytes=700), low[1])
    chosen = SPILL_POLICIES["global-output-penalty"](SpillSnapshot(little, wanted_bytes=100), Random(1))
    assert tuple(chosen) == (1,)


def test_when_a_group_is_inactive_can_be_set() -> None:
    snapshot = SpillSnapshot(GROUPS, wanted_bytes=150, inactive_epochs=25)
    assert tuple(SPILL_POLICIES["least-recent"](snapshot, Random(1))) == (1, 2)
    snapshot = replace(snapshot, inactive_epochs=31)  # all are active: the least productive
    assert tuple(SPILL_POLICIES["least-recent"](snapshot, Random(1))) == (1, 2)
    rich = tuple(replace(group, results=999) if group.group == 1 else group for group in GROUPS)
    assert tuple(SPILL_POLICIES["least-recent"](replace(snapshot, groups=rich), Random(1))) == (2, 0)


def test_a_history_is_of_one_generation() -> None:
    """Results of a generation that went to disk say nothing of the one that follows."""
    manager = SpillManager(Budgets((Budget(40 << 20),)), "recent-history", history_weight=0.5)
    manager.observe({0: 100, 1: 40, 2: 8})
    manager.observe({0: 10, 1: 4, 2: 8}, begun=0b1)
    recent = {group.group: group.recent_results for group in manager._statistics(manifest([1, 1, 1]), 0, 0)}
    assert recent == {0: 10.0, 1: 24.0, 2: 12.0}
    manager.observe({0: 6}, ended=0b100)
    recent = {group.group: group.recent_results for group in manager._statistics(manifest([1, 1, 1]), 0, 0)}
    assert recent == {0: 11.0, 1: 12.0, 2: 0.0}


def test_bottom_up_begins_with_the_lowest_join() -> None:
    chosen = {tuple(SPILL_POLICIES["bottom-up"](SpillSnapshot(TREE, 250), Random(seed))) for seed in range(9)}
    assert {frozenset(order[:2]) for order in chosen} == {frozenset({0, 1})}
    assert all(order[2] == 2 for order in chosen)


def test_random_victims_depend_on_the_generator_only() -> None:
    choose = SPILL_POLICIES["random"]
    snapshot = SpillSnapshot(GROUPS, wanted_bytes=150)
    assert choose(snapshot, Random(3)) == choose(snapshot, Random(3))
    assert len({tuple(choose(snapshot, Random(seed))) for seed in range(20)}) > 1


statistics = st.builds(
    GroupStatistics,
    group=st.integers(0, 255),
    bytes=st.integers(1, 10_000),
    results=st.integers(0, 10_000),
    age_epochs=st.integers(0, 5),
    idle_epochs=st.integers(0, 50),
    recent_results=st.floats(0, 1e6),
    outputs=st.integers(0, 10_000),
    inter_bytes=st.integers(0, 50_000),
    height=st.integers(0, 3),
)


@given(
    st.sampled_from(sorted(SPILL_POLICIES)),
    st.lists(statistics, unique_by=lambda group: group.group, max_size=30),
    st.integers(0, 200_000),
)
def test_enough_is_freed_and_not_one_group_more(
    policy: str, groups: list[GroupStatistics], wanted: int
) -> None:
    chosen = SPILL_POLICIES[policy](SpillSnapshot(tuple(groups), wanted), Random(0))
    sizes = {group.group: group.bytes for group in groups}
    assert len(set(chosen)) == len(chosen)
    freed = sum(sizes[group] for group in chosen)
    assert freed >= min(wanted, sum(sizes.values()))
    if chosen:
        assert freed - sizes[chosen[-1]] < wanted


def manifest(sizes: list[int]) -> Manifest:
    groups = {g: GroupState(rows=1, bytes=size, results=g, born_epoch=0) for g, size in enumerate(sizes)}
    return Manifest(5, 0, (0,) * len(sizes), groups=groups)


def test_a_processor_spills_its_share_when_state_exceeds_its_part_of_the_budget() -> None:
    budget = Budget(42 << 20)
    manager = SpillManager(Budgets((budget,)), share=0.3)
    assert manager.decide(manifest([1 << 20] * 10), {}) == []
    (spill,) = manager.decide(manifest([4 << 20] * 10), {})
    assert spill.groups == 0b111
    assert spill.bytes == 12 << 20


def test_without_a_strategy_the_run_stops_with_an_error() -> None:
    with pytest.raises(BudgetError, match=r"processor 0 holds .* give more memory"):
        SpillManager(Budgets((Budget(40 << 20),)), "none").decide(manifest([4 << 20] * 10), {})


def test_a_budget_smaller_than_one_epoch_needs_is_refused() -> None:
    with pytest.raises(BudgetError, match="less than one epoch needs; give at least 4MB"):
        Budget(MINIMUM_BYTES - 1)


def test_the_share_for_state_can_be_set_and_leaves_room_for_an_epoch() -> None:
    assert Budget(47 << 19, 0.5).state_bytes == 11 << 20  # of what the reserve leaves
    with pytest.raises(BudgetError, match=r"state_share = 0.9 leaves .* or a smaller share"):
        Budget(8 << 20, 0.9)
    with pytest.raises(BudgetError, match="above 0 and below 1"):
        Budget(40 << 20, 1.0)


def test_what_an_epoch_may_use_fits_beside_the_state() -> None:
    budget = Budget(64 << 20)
    limits = budget.limits(Limits(), inputs=3)
    working = budget.memory_bytes - budget.state_bytes
    assert 3 * limits.round_bytes + limits.pending_bytes * 3 <= working
    assert limits.state_bytes == budget.state_bytes
