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
from spillway.state.rows import Cursor, in_order


@dataclass(frozen=True, slots=True)
class CleanupLimits:
    """How much is cleaned up at a time. All defaults are ours."""

    unlimited_batch_bytes: int = 64 << 20
    """Without a budget, groups of this size together are cleaned up at a time."""
    pieces: int = 4
    """Driving rows are copied in pieces, this many for what is cleaned up at a time."""
    piece_bytes: int = 64 << 10
    """The smallest piece."""


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
    """The groups as batches that fit the budget, the most rewarding first; a larger one alone, by parts."""
    limit = batch_bytes or limits.unlimited_batch_bytes
    piece_bytes = max(limits.piece_bytes, limit // limits.pieces)
    order = sorted(members(groups), key=lambda group: (-manifest.groups[group].reward, group))
    batches: list[CleanupBatch] = []
    together: list[int] = []
    size = 0
    for group in order:
        mine = manifest.groups[group].total_bytes
        if together and size + mine > limit:
            batches.append(_batch(manifest, _cursor(together, size, limit, piece_bytes, restore)))
            together, size = [], 0
        together.append(group)
        size += mine
    if together:
        batches.append(_batch(manifest, _cursor(together, size, limit, piece_bytes, restore)))
    return batches


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


def _cursor(groups: Sequence[int], size: int, limit: int, piece_bytes: int, restore: bool) -> Cursor:
    parts = max(1, -(-size // limit)) if len(groups) == 1 else 1
    return Cursor(group_set(groups), restore, parts, piece_bytes)


def _batch(manifest: Manifest, cursor: Cursor) -> CleanupBatch:
    slices = []
    generations = 1
    for run in in_order(manifest.runs.values()):
        by_generation: dict[int, GroupSet] = {}
        for group in members((run.live | run.spilled) & cursor.groups):
            generation = manifest.groups[group].generation(run.last_epoch)
            by_generation[generation] = by_generation.get(generation, 0) | 1 << group
        if by_generation:
            slices.append((run, tuple(sorted(by_generation.items()))))
            generations = max(generations, 1 + max(by_generation))
    return CleanupBatch(cursor, tuple(slices), generations)
