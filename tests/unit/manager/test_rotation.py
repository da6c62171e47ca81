"""Which groups change places, when, and how much may wait for them."""

from dataclasses import replace

import pytest

from spillway.manager.budget import Budget, Budgets
from spillway.manager.rotation import RotationManager, Swap
from spillway.manager.spill import Spill
from spillway.policy.turns import GROUP, SHARE
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import Manifest
from spillway.state.rows.pending import Pending
from spillway.testing import ManualClock

MB = 1 << 20
BUDGETS = Budgets((Budget(16 * MB),))
"""12 MB for state; at most 6 MB may wait."""


def state(size: int, active: int, rows: int = 10) -> GroupState:
    return GroupState(rows=rows, bytes=size, active_epoch=active)


def waits(groups: dict[int, int], processor_rows: int = 100) -> Pending:
    """A file with rows of 1 KB each."""
    mask = sum(1 << group for group in groups)
    return Pending("p", 0, processor_rows, 1, 1, 1024 * processor_rows, mask, tuple(groups.values()))


def manifest(sizes: list[int], suspended: int, input_: dict[int, int], processors: int = 1) -> Manifest:
    placement = tuple(group % processors for group in range(len(sizes)))
    groups = {group: state(size * MB, group) for group, size in enumerate(sizes)}
    pending = {}
    for processor in range(processors):
        mine = {group: rows for group, rows in input_.items() if group % processors == processor}
        pending[processor] = (waits(mine),) if mine else ()
    return Manifest(20, 0, placement, groups=groups, suspended=suspended, pending=pending)


def manager(turns: str = SHARE, gap: float | None = None, *, splittable: bool = True) -> RotationManager:
    return RotationManager(BUDGETS, CLOCK, 0.5, gap, turns, splittable=splittable)


CLOCK = ManualClock()


def resident(of: Manifest) -> dict[int, int]:
    """What is in memory of each processor."""
    found: dict[int, int] = {}
    for group, processor in enumerate(of.placement):
        if not of.suspended >> group & 1:
            found[processor] = found.get(processor, 0) + of.groups[group].bytes
    return found


def decided(rotation: RotationManager, of: Manifest, *, forced: bool = False) -> list[Swap]:
    swaps, spills = rotation.decide(of, [], resident(of), forced=forced)
    assert not spills
    return swaps


def test_a_turn_by_share_takes_what_waited_longest_and_makes_room_with_what_came_back_first() -> None:
    before = manifest([2, 2, 2, 2, 2, 2, 2, 2], 0b11110000, dict.fromkeys(range(4, 8), 10))
    (swap,) = decided(manager(), before)
    assert (swap.resumed, swap.suspended, swap.reason) == (0b00110000, 0b0011, "turn")
    (swap,) = decided(manager(GROUP), before)
    assert (swap.resumed, swap.suspended) == (0b00010000, 0b0001)


def test_input_that_waits_needs_room_too() -> None:
    before = manifest([6, 2, 2], 0b110, {1: 10, 2: 10})
    (swap,) = decided(manager(), before)
    assert (swap.resumed, swap.suspended) == (0b110, 0b001)  # 6 and twice 2 of 9.6 MB do not fit
    before = manifest([6, 2, 2], 0b110, {1: 10})
    (swap,) = decided(manager(), before)
    assert (swap.resumed, swap.suspended) == (0b010, 0)
    before = manifest([6, 2, 2], 0b110, {1: 2_000})
    (swap,) = decided(manager(), before)
    assert (swap.resumed, swap.suspended) == (0b010, 0b001)


@pytest.mark.parametrize("turns", [SHARE, GROUP])
def test_the_gap_is_of_all_processors_or_of_each(turns: str) -> None:
    before = manifest([2] * 8, 0b11110000, dict.fromkeys(range(4, 8), 10), processors=2)
    rotation = manager(turns, gap=10.0)
    CLOCK.now = 0.0
    assert [swap.processor for swap in decided(rotation, before)] == [0, 1]
    rotation.observe(21, [Swap(0, 0, 0b10000, 0, 2 * MB, "turn")], {0: 0.5, 1: 0.1})
    CLOCK.now = 5.0
    assert [swap.processor for swap in decided(rotation, before)] == ([] if turns == SHARE else [1])
    assert [swap.processor for swap in decided(rotation, before, forced=True)] == [0, 1]
    CLOCK.now = 10.0
    assert [swap.processor for swap in decided(rotation, before)] == [0, 1]


def test_unless_told_the_gap_is_as_long_as_the_last_swap_took() -> None:
    before = manifest([2] * 8, 0b11110000, dict.fromkeys(range(4, 8), 10), processors=2)
    rotation = manager(GROUP)
    CLOCK.now = 100.0
    rotation.observe(21, [Swap(n, 0, 0b10000 << n, 0, 2 * MB, "turn") for n in range(2)], {0: 3.0, 1: 1.0})
    CLOCK.now = 102.0
    assert [swap.processor for swap in decided(rotation, before)] == [1]


def test_beyond_the_bound_turns_do_not_wait_and_begin_with_what_waits_most() -> None:
    before = manifest([2, 2, 2, 2], 0b1100, {2: 10, 3: 2_000})
    rotation = manager(gap=3600.0)
    rotation.observe(20, [Swap(0, 0, 1, 0, 1, "turn")], {0: 1.0})
    assert not rotation.is_behind(before)
    assert decided(rotation, before) == []
    more = replace(before, pending={0: (waits({2: 10, 3: 6_200}),)})
    assert rotation.is_behind(more)
    (swap,) = decided(rotation, more)
    assert (swap.resumed & 0b1000, swap.reason) == (0b1000, "turn, too much waits")
    unlimited = replace(rotation, backlog_bytes=1 << 40)
    assert not unlimited.is_behind(more)
    assert not rotation.is_behind(replace(more, suspended=0b0100))  # 3 is in memory: an epoch probes it


def test_rows_that_no_watermark_has_passed_do_not_count() -> None:
    entry = replace(waits({3: 8_000}), earliest=70)
    before = replace(manifest([2] * 4, 0b1000, {}), pending={0: (entry,)}, watermark=70)
    assert not manager().is_behind(before)
    assert manager().is_behind(replace(before, watermark=71))


def test_groups_larger_than_memory_are_spilled_only_if_they_may_be_split() -> None:
    before = manifest([13, 2, 13], 0b100, {2: 10})
    victims = [Spill(0, 0b001, 13 * MB, 15 * MB, "least-productive")]
    swaps, spills = manager().decide(before, victims, resident(before), forced=True)
    assert [spill.groups for spill in spills] == [0b001, 0b100]
    assert [(swap.suspended, swap.resumed, swap.resumed_bytes) for swap in swaps] == [(0, 0b100, 0)]
    swaps, spills = manager(splittable=False).decide(before, victims, resident(before), forced=True)
    assert spills == []
    (swap,) = swaps
    assert (swap.suspended, swap.resumed) == (0b011, 0b100)
    assert "larger than memory" in swap.reason


def test_no_turn_on_a_processor_that_is_about_to_go() -> None:
    before = manifest([2] * 8, 0b11110000, dict.fromkeys(range(4, 8), 10), processors=2)
    swaps, _ = manager().decide(before, [], resident(before), forced=True, closing=range(1, 2))
    assert [swap.processor for swap in swaps] == [0]
