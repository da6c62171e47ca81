"""What is pending: how old it is, and how much of it waits for suspended groups."""

from spillway.model import GroupSet
from spillway.state.log import Manifest


def input_watermark(manifest: Manifest, suspended: GroupSet) -> int | None:
    """The least event time of rows still to be processed, except in suspended groups; None: unknown."""
    if manifest.watermark is None:
        return None
    entries = (entry for queue in manifest.pending.values() for entry in queue)
    waiting = [e.earliest for e in entries if e.earliest is not None and e.groups & ~suspended]
    return min([manifest.watermark, *waiting])


def suspended_input(manifest: Manifest, processor: int) -> dict[int, tuple[int, int]]:
    """Rows that could be probed, and their bytes, of each suspended group of the processor."""
    found: dict[int, tuple[int, int]] = {}
    if manifest.suspended:
        for entry in manifest.pending.get(processor, ()):
            if entry.groups & manifest.suspended and entry.has_final(manifest.watermark):
                for group, rows in entry.only(manifest.suspended).group_rows.items():
                    before = found.get(group, (0, 0))
                    found[group] = (before[0] + rows, before[1] + rows * entry.row_bytes)
    return found
