"""Which groups are cleaned up together, in what order, and with which slices."""

from dataclasses import replace

from spillway.manager.cleanup import (
    CleanupLimits,
    new_batches,
    resumed_batches,
    returning_groups,
    runs_of,
    shared_out,
)
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import NO_BATCH, Manifest
from spillway.state.orders.orders import CleanupBatch
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.run import Position, Run

LIMITS = CleanupLimits()


def state(size: int, results: int = 0, *, spilled: int = 0, ended: tuple[int, ...] = (0,)) -> GroupState:
    return GroupState(ended, 1, size, results, spilled_bytes=spilled)


def manifest(*states: GroupState, placement: tuple[int, ...] = (0, 0, 1, 1)) -> Manifest:
    return Manifest(0, NO_BATCH, placement, groups=dict(enumerate(states)))


def groups_of(batches: list[CleanupBatch]) -> list[int]:
    return [batch.cursor.groups for batch in batches]


def test_batches_are_neighbours_that_fill_the_limit_and_the_most_rewarding_come_first() -> None:
    held = manifest(state(40, 40), state(30, 90), state(60, 0), state(40, 40))
    assert groups_of(new_batches(held, 0b1111, 170, LIMITS, restore=False)) == [0b1111]
    assert groups_of(new_batches(held, 0b1111, 169, LIMITS, restore=False)) == [0b0111, 0b1000]
    assert groups_of(new_batches(held, 0b1111, 100, LIMITS, restore=False)) == [0b0011, 0b1100]
    assert groups_of(new_batches(held, 0b1101, 80, LIMITS, restore=False)) == [0b0001, 0b1000, 0b0100]
    assert groups_of(new_batches(held, 0b1111, 1, LIMITS, restore=False)) == [0b0010, 0b0001, 0b1000, 0b0100]
    assert new_batches(held, 0, 100, LIMITS, restore=False) == []
    assert all(batch.cursor.restore for batch in new_batches(held, 0b1111, 100, LIMITS, restore=True))


def test_without_a_budget_batches_have_a_size_of_their_own() -> None:
    half = LIMITS.unlimited_batch_bytes // 2
    held = manifest(state(half, 3), state(half, 2), state(1, 0))
    assert groups_of(new_batches(held, 0b111, None, LIMITS, restore=True)) == [0b011, 0b100]


def test_a_group_on_disk_and_in_memory_counts_with_both() -> None:
    held = manifest(state(10, 9, spilled=50), state(10, 0, spilled=40))
    assert groups_of(new_batches(held, 0b11, 110, LIMITS, restore=False)) == [0b11]
    assert groups_of(new_batches(held, 0b11, 109, LIMITS, restore=False)) == [0b01, 0b10]


def test_groups_that_fit_return_to_their_own_processor() -> None:
    held = manifest(
        state(5, 90, spilled=40), state(5, 10, spilled=40), state(5, 50, spilled=30), state(5, 0, ended=())
    )
    assert returning_groups(held, {0: 40, 1: 30}) == 0b101
    assert returning_groups(held, {0: 39, 1: 29}) == 0
    assert returning_groups(held, {0: 80}) == 0b011
    assert returning_groups(held, {0: 79, 1: 100}) == 0b101
    assert returning_groups(held, {}) == 0
    first = replace(held, groups={0: state(5, 1, spilled=40), 1: state(5, 1, spilled=40)})
    assert returning_groups(first, {0: 40}) == 0b01  # of equals the first
    small = replace(held, groups={0: state(5, 90, spilled=40), 1: state(5, 10, spilled=20)})
    assert returning_groups(small, {0: 30}) == 0b10  # one that does not fit is passed over


def test_batches_are_dealt_in_turn() -> None:
    batches = [CleanupBatch(Cursor(1 << group, False), ((0,),)) for group in range(5)]
    dealt = shared_out(batches, 2)
    assert [groups_of(list(mine)) for mine in dealt] == [[0b1, 0b100, 0b10000], [0b10, 0b1000]]
    assert shared_out(batches[:1], 3) == [(batches[0],), (), ()]


def test_batches_come_with_their_runs_in_order_and_the_ends_of_their_generations() -> None:
    def run(name: str, epoch: int, live: int, spilled: int) -> Run:
        return Run(name, 0, Position(epoch), epoch, 1, 1, 1, live, spilled)

    second = run("a", 3, live=0b0100, spilled=0b0011)
    first = run("b", 1, live=0, spilled=0b0111)
    third = run("c", 6, live=0b0111, spilled=0)
    other = run("d", 2, live=0b1000, spilled=0)
    cursor = Cursor(0b0111, True, row=4)
    held = replace(
        manifest(state(1, ended=(1, 5)), state(1, ended=(3,)), state(1, ended=(1,)), state(1, ended=())),
        runs={run.name: run for run in (second, first, third, other)},
        cursors=(cursor,),
    )
    (batch,) = resumed_batches(held)
    assert batch == CleanupBatch(cursor, ((1, 5), (3,), (1,)))
    assert runs_of((first, other, second, third), [batch]) == (first, second, third)
    assert runs_of((first,), []) == ()
