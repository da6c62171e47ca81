"""Makes the orders of clean-up epochs: which groups together, from where on, with which slices.

Batches whose clean-up has begun come first: until a batch is done, the state of its groups must not change.
Then come the most rewarding groups: those that gave the most results per byte so far. Clean-up reads only
durable runs, so any processor can do any batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from spillway.manager.budget import Budgets
from spillway.model import GroupSet, group_set, members, union
from spillway.state.graph import Graph
from spillway.state.log import Manifest
from spillway.state.orders import CleanupBatch
from spillway.state.rows import Cursor, Run


@dataclass(frozen=True, slots=True)
class CleanupLimits:
    """How much is cleaned up at a time. All defaults are ours."""

    unlimited_batch_bytes: int = 64 << 20
    """Without a budget, groups of this size together are cleaned up at a time."""
    epoch_seconds: float = 10.0
    """An epoch of clean-up does as much as takes about this long."""


class Cleaning(Enum):
    """What an epoch cleans up."""

    NONE = "none"
    RESUMED = "resumed"
    """Only batches whose clean-up has begun."""
    RETURNING = "returning"
    """Groups that then fit into memory whole."""
    EXPIRING = "expiring"
    """Groups whose rows on disk are kept for missing results only: they are too old for any other."""
    ALL = "all"


def next_batches(
    graph: Graph,
    manifest: Manifest,
    cleaning: Cleaning,
    *,
    room_bytes: Mapping[int, int],
    expiring: GroupSet,
    awaiting: GroupSet,
    resident_bytes: Mapping[int, int],
    budgets: Budgets | None,
    limits: CleanupLimits,
) -> list[CleanupBatch]:
    """The batches of the next clean-up epoch, those that have begun first.

    `expiring` are the groups for `Cleaning.EXPIRING`, `awaiting` those that may still get old rows.
    """
    batches = resumed_batches(manifest)
    if cleaning is Cleaning.RESUMED:
        return batches
    wanted = expiring if cleaning is Cleaning.EXPIRING else manifest.split_groups
    wanted = _next_groups(graph, wanted, union(batch.cursor.groups for batch in batches), awaiting)
    back = 0 if cleaning is Cleaning.ALL else returning_groups(manifest, room_bytes) & wanted
    stay = 0 if cleaning is Cleaning.RETURNING else wanted & ~back
    size = None if budgets is None else _batch_bytes(manifest, stay, resident_bytes, budgets)
    for groups in graph.group_sets:
        batches += new_batches(manifest, back & groups, size, limits, restore=True)
        batches += new_batches(manifest, stay & groups, size, limits, restore=False)
    return batches


def can_return(graph: Graph, manifest: Manifest, room_bytes: Mapping[int, int], awaiting: GroupSet) -> bool:
    """Whether groups that miss results, and are to be cleaned up next, would fit into memory whole."""
    begun = union(cursor.groups for cursor in manifest.cursors)
    wanted = _next_groups(graph, manifest.split_groups, begun, awaiting)
    return bool(returning_groups(manifest, room_bytes) & wanted)


def _next_groups(graph: Graph, wanted: GroupSet, begun: GroupSet, awaiting: GroupSet) -> GroupSet:
    """The groups to start with now, out of those that miss results.

    A tree is cleaned up from below: a join must get no rows while its groups are cleaned up, and a join that
    will get rows anyway should wait until it has them.
    """
    wanted &= ~begun
    if begun:
        return wanted & union(groups for groups in graph.group_sets if groups & begun)
    lowest = wanted & ~graph.downstream(wanted)
    return lowest & ~awaiting or lowest


def _batch_bytes(
    manifest: Manifest, leaving: GroupSet, resident_bytes: Mapping[int, int], budgets: Budgets
) -> int:
    """What is cleaned up at a time, when the images of the groups that leave memory are gone."""
    images = dict.fromkeys(range(manifest.processor_count), 0) | dict(resident_bytes)
    for group in members(leaving):
        images[manifest.placement[group]] -= manifest.groups[group].bytes
    return min(budgets.of(number).cleanup_bytes(max(0, size)) for number, size in images.items())


def resumed_batches(manifest: Manifest) -> list[CleanupBatch]:
    return [_batch(manifest, cursor) for cursor in manifest.cursors]


def new_batches(
    manifest: Manifest, groups: GroupSet, batch_bytes: int | None, limits: CleanupLimits, *, restore: bool
) -> list[CleanupBatch]:
    """The groups as batches of neighbours that fit the budget, or of one; the most rewarding batch first."""
    limit = batch_bytes or limits.unlimited_batch_bytes
    batches: list[list[int]] = []
    size = 0
    for group in members(groups):
        mine = manifest.groups[group].total_bytes
        if not batches or size + mine > limit:
            batches.append([])
            size = 0
        batches[-1].append(group)
        size += mine
    batches.sort(key=lambda together: (-_reward(manifest, together), together))
    return [_batch(manifest, Cursor(group_set(together), restore)) for together in batches]


def _reward(manifest: Manifest, groups: Sequence[int]) -> float:
    """Results per byte over all generations of some groups: what their clean-up can be expected to give."""
    states = [manifest.groups[group] for group in groups]
    results = sum(state.results + state.spilled_results for state in states)
    return results / max(1, sum(state.total_bytes for state in states))


def returning_groups(manifest: Manifest, room_bytes: Mapping[int, int]) -> GroupSet:
    """Groups that miss results and would fit into memory whole: the most rewarding, per processor."""
    chosen = 0
    room = dict(room_bytes)
    split = members(manifest.split_groups)
    for group in sorted(split, key=lambda group: (-manifest.groups[group].reward, group)):
        processor = manifest.placement[group]
        returning = manifest.groups[group].spilled_bytes
        if room.get(processor, 0) >= returning:
            room[processor] -= returning
            chosen |= 1 << group
    return chosen


def shared_out(batches: Sequence[CleanupBatch], processors: int) -> list[tuple[CleanupBatch, ...]]:
    """The batches of each processor, dealt in turn so that all have work."""
    return [tuple(batches[processor::processors]) for processor in range(processors)]


def runs_of(runs: Sequence[Run], batches: Sequence[CleanupBatch]) -> tuple[Run, ...]:
    """Those of the runs that hold rows of the batches."""
    groups = union(batch.cursor.groups for batch in batches)
    return tuple(run for run in runs if (run.live | run.spilled) & groups)


def _batch(manifest: Manifest, cursor: Cursor) -> CleanupBatch:
    return CleanupBatch(cursor, tuple(manifest.groups[group].ended for group in members(cursor.groups)))
