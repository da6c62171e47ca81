"""The plan of a view over streams: with the tree of its checkpoint, in a new one by statistics.

The layout of state follows the tree. So a tree that statistics chose is kept in the checkpoint, and a restart
takes it whatever the statistics say by then. A checkpoint without one was planned without statistics, and a
restart does the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spillway.catalog.file_statistics import FileStatistics
from spillway.errors import ViewError
from spillway.job import SourceSpec
from spillway.manager import stored_identity
from spillway.model import Catalog, View
from spillway.plan.rules import Plan, plan_view
from spillway.state.storage import Storage


def plan_stream_view(
    view: View, catalog: Catalog, sources: Mapping[str, SourceSpec], checkpoint: str | None
) -> Plan:
    """The plan that a run on this checkpoint has; `sources` are those whose files may be looked at."""
    identity = None if checkpoint is None else stored_identity(Storage(checkpoint))
    if identity is None:
        return plan_view(view, catalog, FileStatistics(sources))
    if identity.tree is None:
        return plan_view(view, catalog)
    kept = View().with_tree(*json.loads(identity.tree)).tree
    try:
        return plan_view(view, catalog, kept=kept)
    except ViewError:
        return plan_view(view, catalog)  # of another view, which the checkpoint refuses by name
