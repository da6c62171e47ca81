"""Whose turn pending rows are: by suspended groups, and by a new placement."""

from collections.abc import Sequence
from dataclasses import replace

from spillway.model.group_set import GroupSet, placed_on
from spillway.state.manifest import Manifest
from spillway.state.pending import Pending


def narrowed(queue: Sequence[Pending], groups: GroupSet) -> tuple[Pending, ...]:
    """The part of a queue that is of these groups."""
    return tuple(entry.only(groups) for entry in queue if entry.groups & groups)


def earliest_to_come(manifest: Manifest, suspended: GroupSet) -> int | None:
    """No row is taken in or processed any more that is older, save in suspended groups; None: unknown."""
    if manifest.watermark is None:
        return None
    entries = (entry for queue in manifest.pending.values() for entry in queue)
    waiting = [e.earliest for e in entries if e.earliest is not None and e.groups & ~suspended]
    return min([manifest.watermark, *waiting])


def suspended_input(manifest: Manifest, processor: int) -> dict[int, tuple[int, int]]:
    """Per suspended group of the processor with rows that could be probed: how many, and their size."""
    found: dict[int, tuple[int, int]] = {}
    if manifest.suspended:
        for entry in manifest.pending.get(processor, ()):
            if entry.groups & manifest.suspended and entry.has_final(manifest.watermark):
                for group, rows in entry.only(manifest.suspended).group_rows.items():
                    before = found.get(group, (0, 0))
                    found[group] = (before[0] + rows, before[1] + rows * entry.row_bytes)
    return found


def placed_anew(manifest: Manifest, placement: tuple[int, ...]) -> Manifest:
    """The same state under another placement: pending rows are shared out by the groups they belong to."""
    entries = [entry for queue in manifest.pending.values() for entry in queue]
    pending = {}
    for processor in sorted(set(placement)):
        groups = placed_on(placement, processor)
        pending[processor] = tuple(sorted(narrowed(entries, groups), key=lambda entry: not entry.emitted))
    return replace(manifest, placement=placement, pending=pending)
