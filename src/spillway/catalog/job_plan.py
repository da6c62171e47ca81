"""The plan of a job's view without Spark, as `Session.plan` would make it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from spillway.catalog.place import check_settings, reads_delta
from spillway.catalog.stream_plan import plan_stream_view
from spillway.catalog.streams import stream_columns
from spillway.job import SourceSpec
from spillway.model import View
from spillway.plan.rules import Plan
from spillway.plan.typing import PlanTypes, plan_types, read_input_types


def plan_streams(
    view: View,
    sources: Mapping[str, SourceSpec],
    settings: Mapping[str, str],
    checkpoint: str | None = None,
) -> tuple[Plan, PlanTypes]:
    """The plan of a view over streams, and its types; `settings` are the job's for Spark.

    `checkpoint` is where the view runs: if it has run there, it keeps its tree.
    """
    check_settings(settings, os.environ)
    with_delta = reads_delta(settings)
    catalog = {name: stream_columns(source, with_delta=with_delta) for name, source in sources.items()}
    plan = plan_stream_view(view, catalog, sources, checkpoint)
    return plan, plan_types(
        plan, [read_input_types(input_, catalog[input_.source]) for input_ in plan.inputs]
    )
