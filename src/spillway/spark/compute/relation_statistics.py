"""Statistics of a view's relations, by the cheapest means.

For local Parquet files, footers say most; samples say the rest, within a small part of the time that the
whole computation is expected to take. Other relations need a Spark job over their rows, which takes about as
long as it could save: it runs only if the user asked for a tree, a sample or a memory limit. Otherwise
Spark's own size of the relation serves as a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spillway.catalog.stored import StatisticsCache, footer_statistics
from spillway.compute import (
    SLOT_BYTES,
    ComputeConfig,
    ComputeView,
    KeySketch,
    RelationStatistics,
)
from spillway.model import Catalog
from spillway.spark.compute.statistics import collect_statistics
from spillway.spark.compute.stored_source import read_relations

MOST_GUESSED_ROWS = 1e9
"""Spark assumes an unknown relation to be larger than anything."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Statistics, and the relations for which they are a guess."""

    statistics: list[RelationStatistics]
    guessed: tuple[str, ...] = ()


def collect(
    view: ComputeView,
    sources: Mapping[str, DataFrame],
    catalog: Catalog,
    files: Mapping[str, tuple[str, ...]],
    cache: StatisticsCache,
    config: ComputeConfig,
    processors: int,
) -> Collected:
    """`files` are the local Parquet files of sources that consist of them; guesses are not cached."""
    sample, is_local = config.sample, all(relation.source in files for relation in view.relations)
    if is_local and sample is None:
        return Collected(cache.statistics(lambda: footer_statistics(view, catalog, files, processors)))
    frames = read_relations(view, sources)
    if sample is not None or config.needs_tree:
        share = 1.0 if sample is None else sample
        return Collected(cache.statistics(lambda: collect_statistics(view, frames, sample=share)))
    guessed = tuple(relation.alias for relation in view.relations if relation.source not in files)
    return Collected([_guess(view, number, frame) for number, frame in enumerate(frames)], guessed)


def _guess(view: ComputeView, index: int, frame: DataFrame) -> RelationStatistics:
    stats = frame._jdf.queryExecution().optimizedPlan().stats()
    row_bytes = float(SLOT_BYTES * (len(view.relations[index].columns) + 1))
    rows = round(min(float(str(stats.sizeInBytes())) / row_bytes, MOST_GUESSED_ROWS))
    keys = {
        name: KeySketch(None, rows, float(rows))
        for key in view.keys
        for member, name in key.members
        if member == index
    }
    return RelationStatistics(rows, row_bytes, keys)
