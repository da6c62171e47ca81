"""Flux's policies on golden snapshots: pairs, thresholds, rounds, and the choice between memory and load."""

from dataclasses import replace

import pytest

from kit.snapshots import placement_snapshot
from spillway.errors import StateError
from spillway.model.groups import group_set
from spillway.policy.placement.registry import placement_policy
from spillway.policy.placement.rounds import next_collection, pairs
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import NOTHING, Move


def loaded(
    rows: list[list[int]],
    busy: list[float],
    seconds: float = 1.0,
    limit: int | None = None,
    size: int = 10,
) -> PlacementSnapshot:
    """Processors whose groups had these rows in the sampled epochs, all groups of one size."""
    limits = {"state_limit_bytes": limit, "memory_bytes": limit, "span_seconds": seconds}
    return placement_snapshot(
        [[{"bytes": size, "rows": count, "sampled_rows": count} for count in of] for of in rows],
        [limits | {"busy_seconds": used} for used in busy],
        now=50.0,
        epoch=5,
        collected_seconds=seconds,
    )


def test_processors_are_paired_from_the_ends() -> None:
    assert list(pairs([1, 2, 3, 4, 5])) == [(1, 5), (2, 4)]


def test_one_group_per_pair_the_busiest_that_brings_the_two_closer() -> None:
    """As in the paper's figure 6: in the second pair the busiest group would only swap the roles."""
    before = loaded([[40, 30, 20], [70, 10], [25, 25], [10, 10]], [0.9, 0.8, 0.5, 0.2])
    assert placement_policy("flux-load")(before).moves == (
        Move(group_set([0]), 0, 3, 10, "load: utilisation 0.90 against 0.20"),
        Move(group_set([4]), 1, 2, 10, "load: utilisation 0.80 against 0.50"),
    )


def test_pairs_below_the_imbalance_threshold_are_left_alone() -> None:
    before = loaded([[30, 29], [25, 25]], [0.59, 0.5])
    assert placement_policy("flux-load")(before) == NOTHING
    assert placement_policy("flux-load", {"imbalance_threshold": 1.1})(before) == NOTHING  # no group helps
    fine = loaded([[55, 2, 2], [25, 25]], [0.59, 0.49])
    assert len(placement_policy("flux-load", {"imbalance_threshold": 1.1})(fine).moves) == 1


def test_a_busy_receiver_gets_nothing() -> None:
    before = loaded([[60, 60], [47, 45]], [1.2, 0.92])
    assert placement_policy("flux-load")(before) == NOTHING
    assert placement_policy("flux-load", {"utilisation_threshold": 0.95})(before) == NOTHING  # beyond 1
    relaxed = loaded([[60, 57, 3], [47, 45]], [1.2, 0.92])
    (move,) = placement_policy("flux-load", {"utilisation_threshold": 0.95})(relaxed).moves
    assert move.groups == group_set([2])


def test_a_round_collects_before_it_decides() -> None:
    before = loaded([[40, 40], [10]], [0.16, 0.02], seconds=0.2)
    assert placement_policy("flux-load")(before) == NOTHING
    assert placement_policy("flux-load", {"minimum_collection_seconds": 0.1})(before) != NOTHING
    longer = replace(loaded([[40, 40], [10]], [0.8, 0.1]), collection_seconds=1.5)
    assert placement_policy("flux-load")(longer) == NOTHING


def test_the_next_round_collects_as_long_as_moving_took() -> None:
    assert next_collection(2.0, moved_seconds=5.0, minimum_seconds=0.25) == 5.0
    assert next_collection(2.0, moved_seconds=None, minimum_seconds=0.25) == 1.0
    assert next_collection(0.3, moved_seconds=None, minimum_seconds=0.25) == 0.25


def test_the_last_group_with_rows_stays_because_its_processor_would_be_forgotten() -> None:
    """To an idle processor it would only carry the load along; to a busy one it would come back."""
    assert placement_policy("flux-load")(loaded([[80, 0], [0]], [0.8, 0.0])) == NOTHING
    assert placement_policy("flux-load")(loaded([[20], [10] * 4], [0.8, 0.1])) == NOTHING


def test_a_receiver_without_rows_is_taken_to_be_as_slow_as_the_donor() -> None:
    (move,) = placement_policy("flux-load")(loaded([[50, 30], [0]], [0.8, 0.0])).moves
    assert move.groups == group_set([0])


def test_a_slow_receiver_is_not_made_busier_than_the_donor_was() -> None:
    """The gap would shrink from 0.32 to 0.18, but the maximum would grow from 0.8 to 0.88."""
    before = loaded([[10] * 8, [10, 2]], [0.8, 0.48])
    assert placement_policy("flux-load")(before) == NOTHING
    assert len(placement_policy("flux-load")(loaded([[10] * 8, [10, 10]], [0.8, 0.48])).moves) == 1


def test_excess_capacity_is_levelled_in_memory_first() -> None:
    before = loaded([[1] * 9, [1] * 3], [0.5, 0.5], limit=80)
    on_disk = tuple(
        replace(group, bytes=30, suspended=True) if group.group == 0 else group for group in before.groups
    )
    (move,) = placement_policy("flux-memory")(replace(before, groups=on_disk)).moves
    assert move == Move(group_set([1]), 0, 1, 10, "memory: excess capacity -30 against 50")


def test_hybrid_balances_memory_while_anything_is_on_disk_and_load_otherwise() -> None:
    """Load says 0 sends to 1, memory says 1 sends to 0."""
    before = loaded([[40, 40], [5] * 6], [0.8, 0.3], limit=100)
    (move,) = placement_policy("flux-hybrid")(before).moves
    assert (move.sender, move.receiver) == (0, 1)
    spilled = tuple(replace(group, spilled_bytes=5) if group.group == 3 else group for group in before.groups)
    (move,) = placement_policy("flux-hybrid")(replace(before, groups=spilled)).moves
    assert (move.sender, move.receiver) == (1, 0)


def test_hybrid_moves_a_group_only_to_where_it_fits() -> None:
    before = loaded([[40, 40], [5] * 6], [0.8, 0.3], limit=65)
    assert placement_policy("flux-hybrid")(before) == NOTHING
    assert placement_policy("flux-load")(before) != NOTHING


def test_a_snapshot_that_contradicts_itself_is_refused() -> None:
    processor = ProcessorStatistics(0, 10)
    with pytest.raises(StateError, match="a processor twice"):
        PlacementSnapshot(0, 0, (processor, processor), ())
    with pytest.raises(StateError, match=r"unknown processors \[3\]"):
        PlacementSnapshot(0, 0, (processor,), (PlacedGroup(0, 3, 1),))
    with pytest.raises(StateError, match="a group in two places"):
        PlacementSnapshot(0, 0, (processor,), (PlacedGroup(0, 0, 1), PlacedGroup(0, 0, 1)))
    with pytest.raises(StateError, match="with and without a budget"):
        PlacementSnapshot(0, 0, (processor, ProcessorStatistics(1, 0, 5)), ())


def test_the_first_level_pair_ends_the_round() -> None:
    """By excess capacity 0 is paired with 3 and 1 with 2; only the second pair is apart by fill."""
    sizes = ((990, 1000), (60, 100), (60, 200), (1800, 2000))
    processors = tuple(
        ProcessorStatistics(number, state, limit, limit) for number, (state, limit) in enumerate(sizes)
    )
    owners = [number for number, (state, _) in enumerate(sizes) for _ in range(state // 10)]
    groups = tuple(PlacedGroup(group, number, 10) for group, number in enumerate(owners))
    before = PlacementSnapshot(50.0, 5, processors, groups, collected_seconds=1.0)
    assert placement_policy("flux-memory")(before) == NOTHING
    (move,) = placement_policy("flux-memory", {"imbalance_threshold": 1.05})(before).moves[:1]
    assert (move.sender, move.receiver) == (0, 3)


def test_groups_in_memory_go_to_a_full_receiver_that_makes_room() -> None:
    """Both are full, and the donor has twice as much besides: what is in memory goes first all the same."""
    before = loaded([[1] * 4, [1] * 4], [0.5, 0.5], limit=40)
    extra = tuple(PlacedGroup(20 + n, 0, 10, suspended=True) for n in range(4))
    (move,) = placement_policy("flux-memory")(replace(before, groups=(*before.groups, *extra))).moves
    assert (move.groups, move.bytes, move.makes_room) == (group_set([0]), 10, True)
    roomy = loaded([[1] * 4, [1] * 2], [0.5, 0.5], limit=40)
    (move,) = placement_policy("flux-memory")(roomy).moves
    assert not move.makes_room
