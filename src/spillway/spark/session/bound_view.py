"""A view bound to the sources of a session: their streams, its plan and types, the identity of its run."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from spillway.catalog import plan_stream_view
from spillway.errors import SourceError, ViewError
from spillway.job import SourceSpec
from spillway.manager import Identity
from spillway.manager.files import first_logged
from spillway.model import View
from spillway.plan.rules import Plan
from spillway.spark.sources import BatchFiles, SourceLike, columns_of, open_source, source_place
from spillway.spark.stream import Wire, bind


def open_sources(
    spark: SparkSession, sources: Mapping[str, SourceLike], read: BatchFiles | None = None
) -> dict[str, DataFrame]:
    """The sources as streams; `read` knows which of their files an earlier run has read."""

    def opened(spec: SourceSpec) -> DataFrame:
        if read is None or spec.path is None:
            return open_source(spark, spec)
        known = first_logged(read.storage, spec.path) or read.first(spec.path)
        return open_source(spark, spec, known)

    return {
        name: opened(source) if isinstance(source, SourceSpec) else source for name, source in sources.items()
    }


def bind_view(
    view: View,
    sources: Mapping[str, SourceLike],
    frames: Mapping[str, DataFrame],
    groups: int,
    checkpoint: str | None,
) -> tuple[Plan, Wire]:
    """The plan of a view over these streams, and how it is run; in its checkpoint it keeps its tree."""
    files = {name: source for name, source in sources.items() if isinstance(source, SourceSpec)}
    catalog = {name: columns_of(frame) for name, frame in frames.items()}
    plan = plan_stream_view(view, catalog, files, checkpoint)
    for input_ in plan.inputs:
        if not frames[input_.source].isStreaming:
            raise SourceError(
                f"source {input_.source} is not a streaming DataFrame; open it with spark.readStream"
            )
    return plan, bind(plan, frames, groups)


def view_identity(
    plan: Plan, wire: Wire, groups: int, sources: Mapping[str, SourceLike], sink: str
) -> Identity:
    """What a restart must have, too."""
    if not plan.outputs:
        raise ViewError("the view selects nothing; name at least one column")
    used = sorted({input_.source for input_ in plan.inputs})
    places = tuple(place for name in used if (place := source_place(sources[name])) is not None)
    tree = None if plan.chosen_tree is None else json.dumps(plan.chosen_tree)
    return Identity(plan.fingerprint, plan.view, wire.state_types, groups, places, sink, tree)
