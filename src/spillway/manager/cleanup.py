"""Makes the orders of clean-up epochs: which groups together, from where on, with which slices.

Batches whose clean-up has begun come first: until one is through, the state of its groups must not change.
Then the most rewarding groups: those that gave the most results per byte so far. Clean-up reads durable runs
only, so any processor can do any batch.
"""

from collections.abc import Mapping, Sequence

from spillway.model import GroupSet, group_set, members
from spillway.state.log import Cursor, Manifest
from spillway.state.orders import CleanupBatch
from spillway.state.rows import in_order

PIECE_BYTES = 64 << 10
PIECES = 4
"""Driving rows are copied by a quarter of what is cleaned up at a time, at least by `PIECE_BYTES`."""
UNLIMITED_BATCH_BYTES = 64 << 20
"""Without a budget, groups of this size together are cleaned up at a time."""


def resumed_batches(manifest: Manifest) -> list[CleanupBatch]:
    return [_batch(manifest, cursor) for cursor in manifest.cursors]


def new_batches(
    manifest: Manifest, groups: GroupSet, batch_bytes: int | None, *, restore: bool
) -> list[CleanupBatch]:
    """The groups as batches that fit the budget, the most rewarding first; a larger one alone, by parts."""
    limit = batch_bytes or UNLIMITED_BATCH_BYTES
    order = sorted(members(groups), key=lambda group: (-manifest.groups[group].reward, group))
    batches: list[CleanupBatch] = []
    together: list[int] = []
    size = 0
    for group in order:
        mine = manifest.groups[group].total_bytes
        if together and size + mine > limit:
            batches.append(_batch(manifest, _cursor(together, size, limit, restore)))
            together, size = [], 0
        together.append(group)
        size += mine
    if together:
        batches.append(_batch(manifest, _cursor(together, size, limit, restore)))
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


def _cursor(groups: Sequence[int], size: int, limit: int, restore: bool) -> Cursor:
    parts = max(1, -(-size // limit)) if len(groups) == 1 else 1
    return Cursor(group_set(groups), restore, parts, max(PIECE_BYTES, limit // PIECES))


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
