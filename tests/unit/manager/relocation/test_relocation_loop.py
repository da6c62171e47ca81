"""Policy, manager and a simple model of processors in a closed loop, epoch after epoch, without Spark."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.manager.relocation.moves import placed
from spillway.manager.relocation.protocol import RelocationLimits, RelocationManager
from spillway.model.groups import group_set, members
from spillway.policy.distribution import distributed
from spillway.policy.placement.registry import placement_policy
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.placement.suggestion import Move, Suggestions

MB = 1 << 20


@dataclass
class Cluster:
    """Processors that serve rows at their speed. Groups take equal shares of the input, which waits for the
    slowest processor: so the throughput is that at which the most loaded one is fully used."""

    placement: tuple[int, ...]
    speeds: list[float]
    manager: RelocationManager
    size: int = MB
    now: float = 0.0
    epoch: int = 10
    collected: float = 0.0
    completed: list[tuple[float, int]] = field(default_factory=list)
    rounds: int = 0

    @property
    def throughput(self) -> float:
        """Rows per second of all groups together."""
        loads = [self.placement.count(processor) / speed for processor, speed in enumerate(self.speeds)]
        return len(self.placement) / max(loads)

    def snapshot(self) -> PlacementSnapshot:
        each = self.throughput / len(self.placement) * self.collected
        groups = tuple(
            PlacedGroup(group, owner, self.size, sampled_rows=round(each * 1000), movable=self._free(group))
            for group, owner in enumerate(self.placement)
        )
        processors = tuple(
            ProcessorStatistics(
                processor,
                self.placement.count(processor) * self.size,
                busy_seconds=each * self.placement.count(processor) / speed,
                span_seconds=self.collected,
                adapted_seconds=self.manager.adapted_seconds.get(processor, float("-inf")),
            )
            for processor, speed in enumerate(self.speeds)
        )
        collection = self.manager.collection_seconds
        return PlacementSnapshot(
            self.now,
            self.epoch,
            processors,
            groups,
            collection_seconds=collection,
            collected_seconds=self.collected,
        )

    def _free(self, group: int) -> bool:
        return not self.manager.moving >> group & 1

    def run_epoch(self) -> None:
        snapshot = self.snapshot()
        decision = self.manager.decide(snapshot)
        step = self.manager.plan(snapshot)
        self.placement = placed(self.placement, step.completed)
        self.now += 1.0
        self.epoch += 1
        self.collected += 1.0
        self.manager.observe(step, self.now)
        self.rounds += bool(decision.round_over or (step.completed and not self.manager.moves))
        if decision.round_over or step.completed:
            self.collected = 0.0
        self.completed += [(self.now, group) for moving in step.completed for group in members(moving.groups)]


def five(policy: str, **chosen: float) -> Cluster:
    """Five processors, 60 groups, one of them slowed 2.5 times."""
    manager = RelocationManager(placement_policy(policy, chosen), RelocationLimits(load_bytes=4 * MB))
    return Cluster(distributed("even", 60, 5), [1.0, 1.0, 0.4, 1.0, 1.0], manager)


@pytest.mark.parametrize(("threshold", "groups_left"), [(1.2, 6), (1.1, 5)])
def test_flux_load_relieves_a_slowed_processor_within_20_rounds(threshold: float, groups_left: int) -> None:
    """With the paper's threshold throughput returns to 80 %, with a finer one to 86 %; 88 % is the limit."""
    unloaded = 5.0
    still = five("none")
    adapting = five("flux-load", imbalance_threshold=threshold)
    while adapting.rounds < 20:
        still.run_epoch()
        adapting.run_epoch()
    assert still.throughput < 0.6 * unloaded
    assert adapting.placement.count(2) == groups_left
    assert adapting.throughput == pytest.approx(unloaded * min(4.8 / groups_left, 12 / 14))
    before = len(adapting.completed)
    for _ in range(100):
        adapting.run_epoch()
    assert len(adapting.completed) == before, "a steady load is left alone"


@pytest.mark.parametrize("policy", ["pairwise-memory", "lazy-disk", "diffusion"])
def test_a_skewed_start_is_levelled_and_then_left_alone(policy: str) -> None:
    manager = RelocationManager(placement_policy(policy), RelocationLimits(load_bytes=4 * MB))
    cluster = Cluster(distributed([4, 1, 1], 60, 3), [1.0, 1.0, 1.0], manager)
    for _ in range(300):
        cluster.run_epoch()
    counts = [cluster.placement.count(processor) for processor in range(3)]
    assert min(counts) / max(counts) >= 0.8
    groups = [group for _, group in cluster.completed]
    times = sorted({time for time, _ in cluster.completed})
    if policy == "diffusion":
        assert len(set(groups)) == len(groups), "one adaptation, in which a group moves once"
    else:
        assert all(later - earlier >= 45 for earlier, later in pairwise(times))
        assert len(times) <= 3, "most to least, three times: 40, 10, 10 becomes 21, 18, 21"


requests = st.lists(
    st.tuples(st.sets(st.integers(0, 11), max_size=4), st.integers(0, 3), st.integers(0, 3), st.booleans()),
    max_size=4,
)


@settings(deadline=None)
@given(st.lists(st.tuples(requests, st.sets(st.integers(0, 11), max_size=3)), max_size=12), st.integers(1, 5))
def test_whatever_is_asked_for_a_group_moves_once_at_a_time_and_no_budget_breaks(
    history: list[tuple[list[tuple[set[int], int, int, bool]], set[int]]], load_mb: int
) -> None:
    """Random requests, groups that become pinned for an epoch, room for five of twelve groups each.

    Some say that the receiver makes room; it does not, so nothing must be loaded into it.
    """
    manager = RelocationManager(placement_policy("none"), RelocationLimits(load_bytes=load_mb * MB))
    cluster = Cluster(distributed("even", 12, 4), [1.0] * 4, manager, size=3 * MB)
    for asked, pinned in history:
        before = cluster.snapshot()
        loading = {processor: _loaded(manager, processor) for processor in range(4)}
        processors = tuple(
            replace(
                processor,
                state_limit_bytes=15 * MB,
                resident_bytes=processor.resident_bytes + loading[processor.processor],
                incoming_bytes=sum(
                    move.left_bytes for move in manager.moves if move.move.receiver == processor.processor
                ),
            )
            for processor in before.processors
        )
        groups = tuple(
            replace(group, movable=group.movable and group.group not in pinned) for group in before.groups
        )
        snapshot = replace(before, processors=processors, groups=groups)
        moves = tuple(
            Move(group_set(chosen), sender, receiver, 0, "test", makes_room)
            for chosen, sender, receiver, makes_room in asked
        )
        decision = manager.request(Suggestions(moves), snapshot)
        assert len(decision.begun) + len(decision.refused) == len(moves)
        moving = [group for moving in manager.moves for group in members(moving.groups)]
        assert len(set(moving)) == len(moving)
        step = manager.plan(snapshot, group_set(pinned))
        for processor in range(4):
            loads = [load.bytes for load in step.loads if load.receiver == processor]
            assert sum(loads) <= load_mb * MB
            assert not loads or sum(loads) <= 15 * MB - snapshot.processor(processor).resident_bytes
        for moving in step.completed:
            assert not moving.groups & group_set(pinned)
            assert all(cluster.placement[group] == moving.move.sender for group in members(moving.groups))
        cluster.placement = placed(cluster.placement, step.completed)
        manager.observe(step, cluster.now)
        assert all(cluster.placement.count(processor) <= 5 for processor in range(4))


def _loaded(manager: RelocationManager, receiver: int) -> int:
    return sum(moving.loaded_bytes for moving in manager.moves if moving.move.receiver == receiver)
