"""Spreading: everything that can move ends up on the wanted processors, and those are level."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from spillway.model.groups import members
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.spread import spread_groups

snapshots = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 100), st.integers(0, 9), st.sampled_from([0, 0, 50, 300])),
    min_size=1,
    max_size=40,
)


def made(groups: list[tuple[int, ...]]) -> PlacementSnapshot:
    """Groups of (processor, bytes, one in ten is fixed, bytes on disk)."""
    placed = tuple(
        PlacedGroup(number, processor, bytes=size, movable=luck > 0, spilled_bytes=sum(disk))
        for number, (processor, size, luck, *disk) in enumerate(groups)
    )
    processors = tuple(
        ProcessorStatistics(number, sum(group.bytes for group in placed if group.processor == number))
        for number in range(4)
    )
    return PlacementSnapshot(0.0, 9, processors, placed)


@given(snapshots, st.integers(1, 4))
def test_what_can_move_is_on_the_wanted_processors_and_level(
    groups: list[tuple[int, ...]], wanted: int
) -> None:
    before = made(groups)
    moves = spread_groups(before, range(wanted), "test").moves
    owner = {group.group: group.processor for group in before.groups}
    for move in moves:
        assert move.receiver < wanted
        for group in members(move.groups):
            assert owner[group] == move.sender  # once, and from where it is
            assert before.groups[group].movable
            owner[group] = move.receiver
    assert all(owner[group.group] < wanted for group in before.groups if group.movable)
    fixed = {group.group for group in before.groups if not group.movable}
    assert {group: owner[group] for group in fixed} == {
        group: before.groups[group].processor for group in fixed
    }
    load = dict.fromkeys(range(wanted), 0)
    for group in before.groups:
        if owner[group.group] < wanted:
            load[owner[group.group]] += group.total_bytes + 1
    fullest = max(load, key=lambda number: load[number])
    smallest = min(
        (group.total_bytes + 1 for group in before.groups if owner[group.group] == fullest and group.movable),
        default=0,
    )
    if smallest:  # nothing that could still move would make the two ends more alike
        assert load[fullest] - min(load.values()) <= max(smallest, 1)


def test_any_of_the_fullest_may_give() -> None:
    """The one whose group fits on the emptiest, although another is as full."""
    fixed = [(0, 0, 0)] * 11 + [(1, 0, 0)] * 4 + [(2, 3, 0)]
    moves = spread_groups(made([(0, 76, 1), (1, 83, 1), *fixed]), range(3), "test").moves
    assert [(move.sender, move.receiver, list(members(move.groups))) for move in moves] == [(0, 2, [0])]


def test_a_level_cluster_stays() -> None:
    level = made([(number % 4, 10, 5) for number in range(16)])
    assert spread_groups(level, range(4), "test").moves == ()


def test_state_on_disk_counts_because_it_comes_back() -> None:
    """Of two processors with four small groups each, one has generations of all of its groups on disk."""
    groups = [(0, 10, 5, 90)] * 4 + [(1, 10, 5, 0)] * 4
    moves = spread_groups(made(groups), range(3), "test").moves
    assert {move.sender for move in moves} == {0}
    assert Counter(move.receiver for move in moves for _ in members(move.groups)) == {1: 1, 2: 1}


def test_no_more_goes_to_a_processor_than_its_memory_has_room_for() -> None:
    """The second is the emptiest by all state, but its memory is full."""
    before = made([(0, 50, 5, 200), (0, 50, 5, 200), (1, 95, 5, 0), (2, 10, 5, 150)])
    processors = tuple(replace(processor, state_limit_bytes=100) for processor in before.processors)
    moves = spread_groups(replace(before, processors=processors), range(3), "test").moves
    assert all(move.receiver != 1 for move in moves)
    homeless = spread_groups(replace(before, processors=processors), range(1, 3), "test").moves
    assert Counter(move.receiver for move in homeless if move.sender == 0)[2] >= 1
