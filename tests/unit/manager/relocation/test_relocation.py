"""The relocation manager: what it accepts and refuses, and how a move goes from loading to its end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.snapshots import MB, placement_snapshot
from spillway.manager.budget import Budget
from spillway.manager.journal.epoch import relocation_entry
from spillway.manager.relocation.decision import Decision, Refusal
from spillway.manager.relocation.moves import advanced, begun, incoming_runs, next_loads, placed
from spillway.manager.relocation.protocol import RelocationLimits, RelocationManager
from spillway.manager.relocation.safety import pinned_groups
from spillway.manager.relocation.statistics import PlacementStatistics
from spillway.model.codec import to_json
from spillway.model.groups import group_set, members
from spillway.policy.placement.registry import placement_policy
from spillway.policy.placement.snapshot import PlacementSnapshot
from spillway.policy.placement.suggestion import ForcedSpill, Move, Suggestions
from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import Manifest
from spillway.state.orders.report import Report
from spillway.state.rows.cursor import Cursor
from spillway.state.rows.pending import Pending
from spillway.state.rows.run import Position, Run


def snapshot(
    sizes: list[list[int]], now: float = 100.0, epoch: int = 50, limit: int | None = 100, busy: float = 0.0
) -> PlacementSnapshot:
    """Processors whose groups have these sizes in MB."""
    bytes_limit = None if limit is None else limit * MB
    limits = {"state_limit_bytes": bytes_limit, "memory_bytes": bytes_limit, "span_seconds": 1.0}
    return placement_snapshot(
        [[{"bytes": size * MB, "sampled_rows": 10} for size in of] for of in sizes],
        [limits | {"busy_seconds": busy / (1 + number)} for number in range(len(sizes))],
        now,
        epoch,
        collected_seconds=1.0,
    )


def manager(name: str = "pairwise-memory", load_mb: int = 8, **chosen: object) -> RelocationManager:
    return RelocationManager(placement_policy(name, chosen), RelocationLimits(load_bytes=load_mb * MB))


def move(groups: list[int], sender: int, receiver: int) -> Suggestions:
    return Suggestions((Move(group_set(groups), sender, receiver, 0, "test"),))


SKEWED = snapshot([[10] * 6, [10] * 2])


def test_a_move_is_loaded_in_slices_and_then_the_placement_changes() -> None:
    relocation = manager()
    decision = relocation.decide(SKEWED)
    assert [begun_.move.bytes for begun_ in decision.begun] == [20 * MB]
    loaded = []
    while not (step := relocation.plan(SKEWED)).completed:
        loaded.append([load.bytes // MB for load in step.loads])
        relocation.observe(step, 101.0)
    assert loaded == [[8], [8], [4]]
    assert placed((0, 0, 0, 0, 0, 0, 1, 1), step.completed) == (1, 1, 0, 0, 0, 0, 1, 1)
    assert relocation.moving == 0b11
    relocation.observe(step, 102.0)
    assert relocation.moves == ()
    assert relocation.adapted_seconds == {0: 102.0, 1: 102.0}
    assert to_json(relocation_entry(decision, step))["switched"][0]["groups"] == [0, 1]


def test_one_relocation_at_a_time_and_a_span_between_two() -> None:
    relocation = manager()
    assert relocation.decide(SKEWED).begun
    (refusal,) = relocation.decide(SKEWED).refused
    assert refusal.reason == "a relocation is under way"
    while relocation.moves:
        relocation.observe(relocation.plan(SKEWED), 110.0)
    (refusal,) = relocation.decide(replace(SKEWED, now_seconds=120.0)).refused
    assert refusal.reason == "the last relocation ended 10.0 s ago; the span is 45 s"
    assert relocation.decide(replace(SKEWED, now_seconds=155.0)).begun


def test_not_right_after_a_restart() -> None:
    relocation = manager()
    relocation.started_epoch = 47
    (refusal,) = relocation.decide(SKEWED).refused
    assert refusal.reason == "3 epochs since the start; adaptation waits for 5"
    assert relocation.decide(replace(SKEWED, epoch=52)).begun


def pinned(before: PlacementSnapshot, *groups: int) -> PlacementSnapshot:
    return replace(
        before, groups=tuple(replace(group, movable=group.group not in groups) for group in before.groups)
    )


@pytest.mark.parametrize(
    ("suggestions", "before", "reason"),
    [
        (move([0, 1], 0, 1), pinned(SKEWED, 1), "groups 1 are inside a row or in clean-up"),
        (move([6], 0, 1), SKEWED, "groups 6 are not on processor 0"),
        (move([0], 0, 7), SKEWED, "there is no processor 7"),
        (move([0], 9, 1), SKEWED, "there is no processor 9"),
        (move([0], 0, 0), SKEWED, "nothing would move"),
        (move([], 0, 1), SKEWED, "nothing would move"),
        (
            move([0], 0, 1),
            snapshot([[30], [80]]),
            f"processor 1 has room for {20 * MB} bytes, not for {30 * MB}",
        ),
    ],
)
def test_a_user_may_ask_at_any_time_but_not_for_what_is_unsafe(
    suggestions: Suggestions, before: PlacementSnapshot, reason: str
) -> None:
    relocation = manager("none")
    relocation.started_epoch = before.epoch
    decision = relocation.request(suggestions, before)
    assert [refusal.reason for refusal in decision.refused] == [reason]
    assert decision.begun == ()
    assert relocation.moves == ()
    assert relocation.request(move([0], 0, 1), SKEWED).begun


def test_moves_of_one_adaptation_share_the_room_of_a_receiver() -> None:
    relocation = manager("none")
    before = snapshot([[30], [30], [50]])
    both = Suggestions((*move([0], 0, 2).moves, *move([1], 1, 2).moves))
    decision = relocation.request(both, before)
    assert len(decision.begun) == 1
    assert decision.refused[0].reason == f"processor 2 has room for {20 * MB} bytes, not for {30 * MB}"


def test_forced_spills_are_not_concurrent_with_relocation_and_counted() -> None:
    relocation = manager("none")
    spill = ForcedSpill(0, 0b1, 10 * MB, "test")
    decision = relocation.request(Suggestions((Move(0b10, 0, 1, 0, "test"),), (spill,)), SKEWED)
    assert [refusal.reason for refusal in decision.refused] == ["a relocation is under way"]
    relocation = manager("none")
    assert relocation.request(Suggestions(spills=(spill, spill)), SKEWED) == Decision(
        spills=(spill,), refused=(Refusal(spill, "groups 0 are spilled already"),)
    )
    assert relocation.forced_bytes == 10 * MB
    assert relocation.adapted_seconds == {0: 100.0}


def test_only_senders_of_moves_under_way_may_postpone_their_spill() -> None:
    over = snapshot([[1] * 102, [1] * 90])
    over = replace(over, processors=tuple(replace(p, memory_bytes=133 * MB) for p in over.processors))
    assert manager("lazy-disk").decide(over).relieved == {0}
    late = manager("lazy-disk")
    late.started_epoch = 50
    assert late.decide(over).relieved == frozenset()


def test_a_loaded_move_waits_for_unfinished_groups_and_then_leaves_them() -> None:
    relocation = manager(load_mb=100)
    relocation.decide(SKEWED)
    relocation.observe(relocation.plan(SKEWED, pinned=0b1), 101.0)
    for _ in range(10):
        step = relocation.plan(SKEWED, pinned=0b1)
        assert (step.completed, step.abandoned) == ((), ())
        relocation.observe(step, 102.0)
    step = relocation.plan(SKEWED, pinned=0b1)
    assert [completed.groups for completed in step.completed] == [0b10]
    assert [(a.groups, a.reason) for a in step.abandoned] == [(0b1, "still inside a row or in clean-up")]
    relocation.observe(step, 103.0)
    assert relocation.moves == ()


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (snapshot([[10] * 6, [10, 81]]), f"processor 1 has only room for {9 * MB} of {20 * MB} bytes"),
        (snapshot([[0] + [10] * 5, [10] * 2]), "groups 0 left the memory of processor 0"),
        (snapshot([[], [10] * 8]), "groups 0, 1 are no longer on processor 0"),
        (snapshot([[10] * 8]), "processor 1 is gone"),
    ],
)
def test_a_move_that_cannot_go_on_is_abandoned(then: PlacementSnapshot, reason: str) -> None:
    relocation = manager()
    relocation.decide(SKEWED)
    step = relocation.plan(then)
    assert [abandoned.reason for abandoned in step.abandoned] == [reason]
    relocation.observe(step, 101.0)
    assert relocation.moves == ()


def test_rounds_of_flux_last_as_long_as_moving_took() -> None:
    relocation = manager("flux-load")
    busy = snapshot([[10] * 6, [10] * 2], busy=0.8)
    assert relocation.decide(busy).begun
    assert not relocation.decide(busy).round_over
    while relocation.moves:
        relocation.observe(relocation.plan(busy), 106.0)
    assert relocation.collection_seconds == 6.0
    idle = snapshot([[10], [10]], now=200.0)
    assert relocation.decide(idle).round_over
    assert relocation.collection_seconds == 3.0


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 99), st.integers(0, 255)), max_size=12),
    st.integers(1, 30),
)
def test_loading_takes_every_run_once_and_never_too_many_bytes_at_a_time(
    sizes: list[int], stored: list[tuple[int, int]], limit: int
) -> None:
    groups = (1 << len(sizes)) - 1
    whole = Move(groups, 0, 1, sum(sizes), "test")
    runs = [
        Run(f"r{number}", 0, Position(number), number, 1, size, 0, live | (1 << 9))
        for number, (size, live) in enumerate(stored)
    ]
    later = Run("later", 0, Position(len(runs)), len(runs), 1, 10, 0, groups)
    table = (begun(0, whole, dict(enumerate(sizes)), len(runs), 0.0),)
    there: list[str] = []
    while loads := next_loads(table, limit):
        assert loads[0].bytes == min(limit, table[0].left_bytes)
        table = advanced(table, loads)
        now = incoming_runs([later, *runs[::-1]], table[0], table[0].loaded_bytes)
        assert [run.name for run in now[: len(there)]] == there  # what was loaded stays
        assert all(run.live and not run.live & ~groups for run in now)
        there = [run.name for run in now]
    if sum(sizes):
        assert there == [run.name for run in runs if run.live & groups]


def report(processor: int, rows: dict[int, int], busy: float, resident: int) -> Report:
    return Report(
        processor, "host", "0", (), (), (), {}, 0, 0, 0, resident, 0, busy, {}, rows, {}, dict(rows),
        wall_seconds=2 * busy,
    )  # fmt: skip


def test_a_snapshot_is_made_of_reports_and_manifest() -> None:
    groups = {0: GroupState(rows=5, bytes=500, results=7, born_epoch=3), 1: GroupState((2,), 1, 50, 0, 9)}
    pending = {1: (Pending("p", 0, 10, 100, 0, 500, 0b10, (5,), skip=5, emitted=3),)}
    manifest = Manifest(9, 0, (0, 1, 1), groups=groups, pending=pending, suspended=0b1)
    statistics = PlacementStatistics()
    for _ in range(2):
        statistics.observe([report(0, {0: 4}, 0.5, 900), report(1, {1: 2}, 0.1, 20)], 2.0)
    relocation = manager()
    made = statistics.snapshot(manifest, {0: Budget(40 * MB), 1: Budget(80 * MB)}, relocation, 77.0)
    assert (made.now_seconds, made.epoch, made.collected_seconds) == (77.0, 10, 4.0)
    first, second = made.processors
    assert (first.resident_bytes, first.utilisation) == (900, 1.0)
    assert first.state_limit_bytes == Budget(40 * MB).state_bytes
    assert (second.resident_bytes, second.pending_rows, second.pending_bytes) == (50, 5, 250)
    assert [g.sampled_rows for g in made.groups] == [8, 4, 0]
    assert [g.movable for g in made.groups] == [True, False, True]
    assert [g.suspended for g in made.groups] == [True, False, False]
    assert [g.mature for g in made.groups] == [True, False, True]
    statistics.restart()
    assert statistics.snapshot(manifest, {0: None, 1: None}, relocation, 78.0).collected_seconds == 0


def test_half_cleaned_groups_are_fixed() -> None:
    manifest = Manifest(9, 0, (0, 1, 1), cursors=(Cursor(0b101, True),))
    assert list(members(pinned_groups(manifest))) == [0, 2]


def test_a_receiver_that_makes_room_is_waited_for() -> None:
    relocation = manager("none")
    full = snapshot([[30], [10] * 9])
    asked = Suggestions((Move(0b1, 0, 1, 30 * MB, "test", makes_room=True),))
    assert relocation.request(asked, full).begun
    for _ in range(3):
        step = relocation.plan(full)
        assert (step.loads, step.completed, step.abandoned) == ((), (), ())
        relocation.observe(step, 101.0)
    after_its_spill = snapshot([[30], [10] * 6])
    assert [load.bytes for load in relocation.plan(after_its_spill).loads] == [8 * MB]
    (abandoned,) = relocation.plan(replace(full, epoch=full.epoch + 11)).abandoned
    assert abandoned.reason == f"processor 1 has only room for {10 * MB} of {30 * MB} bytes"


def test_no_room_can_be_made_for_more_than_all_memory() -> None:
    relocation = manager("none")
    asked = Suggestions((Move(0b1, 0, 1, 0, "test", makes_room=True),))
    (refusal,) = relocation.request(asked, snapshot([[130], [10]])).refused
    assert refusal.reason == f"processor 1 has room for {90 * MB} bytes, not for {130 * MB}"


def test_moves_that_wait_for_room_share_what_there_is() -> None:
    relocation = manager("none", load_mb=100)
    both = Suggestions(tuple(Move(1 << group, group, 2, 0, "test", makes_room=True) for group in range(2)))
    assert len(relocation.request(both, snapshot([[30], [30], [95]])).begun) == 2
    step = relocation.plan(snapshot([[30], [30], [60]]))
    assert [load.bytes for load in step.loads] == [30 * MB]
    assert step.abandoned == ()
