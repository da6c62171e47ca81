"""Memory policies on golden snapshots: who sends, who receives, how much, which groups."""

from dataclasses import replace

import pytest

from kit.snapshots import MB, placement_snapshot, with_group, with_processor
from spillway.errors import JobError
from spillway.model.groups import group_set
from spillway.policy.placement.active_disk import ActiveDiskParameters, spill_allowance
from spillway.policy.placement.need import Progress
from spillway.policy.placement.registry import placement_policy
from spillway.policy.placement.snapshot import PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import NOTHING, ForcedSpill, Move, Suggestions

LIMIT = 100 * MB


def snapshot(
    sizes: list[list[int]],
    limit: int | list[int] | None = LIMIT,
    results: list[list[int]] | None = None,
    now: float = 100.0,
) -> PlacementSnapshot:
    """Processors whose groups have these sizes in MB; results are 10 per group unless given."""
    limits = limit if isinstance(limit, list) else [limit] * len(sizes)
    return placement_snapshot(
        [
            [
                {"bytes": size * MB, "results": got, "sampled_results": got}
                for size, got in zip(of, [10] * len(of) if results is None else results[number], strict=True)
            ]
            for number, of in enumerate(sizes)
        ],
        [
            {"state_limit_bytes": most, "memory_bytes": None if most is None else int(most * 4 / 3)}
            for most in limits
        ],
        now,
        epoch=10,
    )


def adapted(before: PlacementSnapshot, processor: int, at: float) -> PlacementSnapshot:
    return with_processor(before, processor, adapted_seconds=at)


def test_half_of_the_difference_moves_from_most_to_least_productive_groups_first() -> None:
    before = snapshot([[10, 10, 10, 10], [20], [10, 10]], results=[[1, 9, 5, 7], [1], [1, 1]])
    suggestions = placement_policy("pairwise-memory")(before)
    reason = "memory: processor 1 has 50 % of processor 0"
    assert suggestions == Suggestions((Move(group_set([1]), 0, 1, 10 * MB, reason),))
    before = snapshot([[10, 10, 10, 10, 20], [20]], results=[[1, 9, 5, 7, 1], [1]])
    (move,) = placement_policy("pairwise-memory")(before).moves
    assert (move.groups, move.bytes) == (group_set([1, 3]), 20 * MB)


def test_above_the_threshold_nothing_moves() -> None:
    before = snapshot([[10] * 10, [10] * 8])
    assert placement_policy("pairwise-memory")(before) == NOTHING
    strict = placement_policy("pairwise-memory", {"relocation_threshold": 0.9})
    assert strict(before).moves[0].bytes == 10 * MB


def test_the_span_is_counted_from_the_last_adaptation_of_any_processor() -> None:
    before = snapshot([[10] * 4, [10], [10]])
    assert placement_policy("pairwise-memory")(adapted(before, 2, at=56.0)) == NOTHING
    assert placement_policy("pairwise-memory")(adapted(before, 2, at=55.0)) != NOTHING


def test_with_unequal_budgets_fill_is_levelled() -> None:
    before = snapshot([[10] * 6, [10] * 3], limit=[60 * MB, 120 * MB])
    (move,) = placement_policy("pairwise-memory")(before).moves
    assert (move.sender, move.receiver, move.bytes) == (0, 1, 30 * MB)  # 30 of 60, and 60 of 120


def test_a_group_larger_than_half_of_the_difference_moves_if_that_still_helps() -> None:
    (move,) = placement_policy("pairwise-memory")(snapshot([[15, 15], [4]])).moves
    assert move.bytes == 15 * MB
    assert placement_policy("pairwise-memory")(snapshot([[30], [0, 4]])) == NOTHING


def test_no_more_moves_than_the_receiver_has_room_for() -> None:
    (move,) = placement_policy("pairwise-memory")(snapshot([[10] * 16, [10] * 8])).moves
    assert move.bytes == 20 * MB  # not 40: the limit is 100


def test_groups_that_cannot_move_or_have_nothing_in_memory_stay() -> None:
    before = snapshot([[10, 10, 10], [10]])
    pinned = with_group(with_group(before, 0, movable=False), 1, suspended=True)
    (move,) = placement_policy("pairwise-memory")(pinned).moves
    assert move.groups == group_set([2])
    assert placement_policy("pairwise-memory")(with_group(pinned, 2, movable=False)) == NOTHING


def test_crumbs_do_not_move() -> None:
    tiny = replace(
        snapshot([[1], [0]]),
        processors=(ProcessorStatistics(0, 60_000, LIMIT), ProcessorStatistics(1, 10, LIMIT)),
    )
    assert placement_policy("pairwise-memory")(tiny) == NOTHING


def test_lazy_disk_prefers_groups_without_state_on_disk() -> None:
    before = with_group(snapshot([[10] * 4, [10] * 2], results=[[9, 1, 1, 1], [1, 1]]), 0, spilled_bytes=MB)
    assert placement_policy("pairwise-memory")(before).moves[0].groups == group_set([0])
    assert placement_policy("lazy-disk")(before).moves[0].groups == group_set([1])


def test_lazy_disk_sends_overflow_to_a_processor_with_room_and_postpones_the_spill() -> None:
    before = snapshot([[1] * 102, [1] * 90])
    assert placement_policy("pairwise-memory")(before) == NOTHING
    suggestions = placement_policy("lazy-disk")(before)
    assert suggestions.moves[0].bytes == 6 * MB
    assert suggestions.moves[0].reason == f"overflow: processor 1 has room for {2 * MB} bytes"
    assert suggestions.relieved == {0}


def test_lazy_disk_lets_a_processor_spill_that_no_move_can_relieve() -> None:
    full = snapshot([[1] * 102, [1] * 99])
    assert placement_policy("lazy-disk")(full) == NOTHING
    far_beyond = placement_policy("lazy-disk")(snapshot([[1] * 120, [1] * 40]))
    assert far_beyond.moves
    assert far_beyond.relieved == frozenset()  # the working memory has no room for 20 MB of state


def test_a_move_under_way_postpones_the_spill_of_its_sender() -> None:
    before = adapted(snapshot([[1] * 102, [1] * 90]), 1, at=99.0)
    sending = tuple(
        replace(processor, outgoing_bytes=(0 if processor.processor else 5 * MB))
        for processor in before.processors
    )
    assert placement_policy("lazy-disk")(replace(before, processors=sending)) == Suggestions(
        relieved=frozenset({0})
    )
    assert placement_policy("lazy-disk")(before) == NOTHING


ACTIVE = snapshot([[10] * 10, [10] * 10], results=[[40] * 10, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])


def test_active_disk_spills_the_least_productive_groups_of_the_least_productive_processor() -> None:
    policy = placement_policy("active-disk", {"query_bytes": 260 * MB})
    reason = "productivity: 5.5 results per group, the best processor has 40.0"
    spill = ForcedSpill(1, group_set([10, 11, 12]), 30 * MB, reason)
    assert policy(ACTIVE) == Suggestions((), (spill,))


def test_forced_spill_is_bounded_by_what_the_query_needs_beyond_the_cluster() -> None:
    policy = placement_policy("active-disk", {"query_bytes": 225 * MB})
    assert policy(ACTIVE).spills[0].bytes == 20 * MB
    assert policy(replace(ACTIVE, forced_bytes=20 * MB)) == NOTHING
    all_taken = replace(ACTIVE, progress=Progress(taken_rows=500))
    assert placement_policy("active-disk", {"input_rows": 500})(all_taken) == NOTHING  # all state fits


def test_what_the_query_will_need_is_estimated_from_how_far_its_input_is() -> None:
    """State is 200 MB, all that fits; a fifth, a half or all of the input is taken."""
    for taken, allowed in ((100, 800), (250, 200), (500, 0), (900, 0)):
        early = replace(ACTIVE, progress=Progress(taken_rows=taken))
        assert spill_allowance(early, ActiveDiskParameters(input_rows=500)) == allowed * MB
    window = replace(ACTIVE, progress=Progress(100, passed_seconds=40.0, window_seconds=60.0))
    assert spill_allowance(window, ActiveDiskParameters()) == 100 * MB
    assert spill_allowance(window, ActiveDiskParameters(input_rows=110)) == 20 * MB
    assert spill_allowance(window, ActiveDiskParameters(query_bytes=205 * MB, input_rows=110)) == 5 * MB
    full = replace(ACTIVE, progress=Progress(100, passed_seconds=90.0, window_seconds=60.0))
    assert spill_allowance(full, ActiveDiskParameters()) == 0
    unbounded = with_group(replace(ACTIVE, progress=Progress(100)), 0, spilled_bytes=15 * MB)
    assert spill_allowance(unbounded, ActiveDiskParameters()) == 230 * MB, "as much again"
    assert spill_allowance(replace(unbounded, forced_bytes=30 * MB), ActiveDiskParameters()) == 200 * MB
    assert spill_allowance(snapshot([[10], [10]], limit=None), ActiveDiskParameters()) == 0


def test_the_need_may_be_written_as_a_size() -> None:
    policy = placement_policy("active-disk", {"query_bytes": "225MB"})
    assert policy(ACTIVE).spills[0].bytes == 20 * MB


def test_active_disk_leaves_similar_processors_and_empty_memory_alone() -> None:
    policy = placement_policy("active-disk", {"query_bytes": 260 * MB})
    alike = snapshot([[10] * 10, [10] * 10], results=[[4] * 10, [2] * 10])
    assert policy(alike) == NOTHING
    empty = snapshot([[4] * 10, [4] * 10], results=[[40] * 10, [1] * 10])
    assert policy(empty) == NOTHING


def test_active_disk_balances_memory_first() -> None:
    policy = placement_policy("active-disk", {"query_bytes": 260 * MB})
    suggestions = policy(snapshot([[10] * 10, [10] * 6], results=[[40] * 10, [1] * 6]))
    assert suggestions.moves
    assert suggestions.spills == ()


def test_diffusion_levels_all_processors_at_once() -> None:
    before = snapshot([[10] * 9, [10] * 5, [10], [10]])
    moves = placement_policy("diffusion")(before).moves
    assert {(move.sender, move.receiver, move.bytes) for move in moves} == {
        (0, 2, 30 * MB),
        (0, 3, 20 * MB),
        (1, 3, 10 * MB),
    }
    assert all(move.reason == "memory: towards an average of 40 %" for move in moves)


@pytest.mark.parametrize("name", ["pairwise-memory", "lazy-disk", "active-disk", "diffusion", "none"])
def test_one_processor_has_nobody_to_send_to(name: str) -> None:
    assert placement_policy(name)(snapshot([[10, 10]])) == NOTHING


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("eager", {}, r'adapt = "eager": must be one of none, pairwise-memory, lazy-disk'),
        ("none", {"x": 1}, "it has no parameters"),
        ("lazy-disk", {"lambda": 1}, r'lambda: no parameter of "lazy-disk"; it has relocation_threshold'),
        ("lazy-disk", {"relocation_threshold": 1.5}, "above 0 and at most 1"),
        ("lazy-disk", {"relocation_threshold": True}, "must be a number"),
        ("lazy-disk", {"minimum_span_seconds": -1}, "must not be negative"),
        ("lazy-disk", {"minimum_difference_bytes": 0.5}, "whole number of bytes"),
        ("lazy-disk", {"overflow_share": 2}, "between 0 and 1"),
        ("active-disk", {"productivity_threshold": 0.5}, "at least 1"),
        ("active-disk", {"spill_share": 0}, "above 0"),
        ("active-disk", {"query_bytes": -1}, "must not be negative"),
        ("active-disk", {"query_bytes": "many"}, r"\[run.policy\] query_bytes = \"many\": not a size"),
        ("active-disk", {"input_rows": 0}, "at least 1"),
        ("active-disk", {"input_rows": 1.5}, "whole number of rows"),
        ("active-disk", {"minimum_fill": float("nan")}, "must be finite"),
        ("flux-load", {"utilisation_threshold": 2}, "at most 1"),
        ("flux-memory", {"imbalance_threshold": 0.5}, "at least 1"),
        ("flux-memory", {"utilisation_threshold": 0.5}, "no parameter"),
        ("flux-hybrid", {"minimum_collection_seconds": -1}, "must not be negative"),
    ],
)
def test_bad_parameters_are_refused(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(JobError, match=message):
        placement_policy(name, settings)
