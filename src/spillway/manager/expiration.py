"""Which rows the next epoch may drop because they are too old, and which must stay all the same.

A row that is too old for new input stays while it may still meet older rows: those of spilled generations, of
pending input, and results that operators upstream are missing.
"""

from spillway.manager.pending_queue import input_watermark
from spillway.model import GroupSet, all_groups, group_set
from spillway.state.graph import Graph
from spillway.state.log import Manifest
from spillway.state.rows import Expiry, expired_slices, lagging_groups


def next_expiry(graph: Graph, manifest: Manifest, suspended: GroupSet = 0) -> Expiry:
    """What may expire in the next epoch, in which these groups are suspended."""
    if graph.waits:
        return Expiry(graph.windows, input_watermark(manifest, suspended))
    if manifest.mid_row_groups:
        keep = all_groups(graph.groups)
    else:
        keep = manifest.spilled_groups | manifest.waiting_groups | awaiting_groups(graph, manifest)
    return Expiry(graph.windows, manifest.watermark, keep)


def awaiting_groups(graph: Graph, manifest: Manifest) -> GroupSet:
    """Groups that may still get old rows: upstream of them results are missing, or rows wait."""
    return graph.downstream(manifest.split_groups | manifest.waiting_groups)


def expiring_groups(graph: Graph, manifest: Manifest) -> GroupSet:
    """Groups whose rows on disk could go if the results that they miss were produced."""
    runs = tuple(manifest.runs.values())
    return lagging_groups(runs, next_expiry(graph, manifest)) & manifest.split_groups


def unneeded_slices(
    graph: Graph, manifest: Manifest, expiry: Expiry, changed: GroupSet
) -> tuple[tuple[str, GroupSet], ...]:
    """Slices on disk that nothing needs after an epoch: of whole groups that are not among the `changed`.

    No rows may wait for them either: those came in when the watermark was lower.
    """
    if not expiry.windows or manifest.mid_row_groups:
        return ()
    busy = changed | manifest.split_groups | manifest.waiting_groups | awaiting_groups(graph, manifest)
    groups = manifest.groups.items()
    whole = group_set(group for group, state in groups if len(state.ended) == 1 and not state.rows)
    return expired_slices(tuple(manifest.runs.values()), expiry, whole & ~busy)
