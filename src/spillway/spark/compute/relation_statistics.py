"""Statistics of a view's relations, by the cheapest means that there is.

Local Parquet files tell most by their footers, and the rest by samples within a small part of the time that
the whole computation is expected to take. Of other relations nothing is known without a Spark job over their
rows, which takes about as long as it could save: it runs only where a tree was asked for or a memory limit is
to be kept. Otherwise Spark's own size of a relation must do, as a guess."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from spillway.compute import (
    SLOT_BYTES,
    ComputeView,
    Footers,
    KeySketch,
    ParquetRelation,
    ReadRelation,
    RelationStatistics,
    expected_seconds,
    statistics_seconds,
)
from spillway.spark.compute.segment_sql import quoted
from spillway.spark.compute.statistics import collect_statistics
from spillway.spark.compute.stored_source import read_relations

MOST_GUESSED_ROWS = 1e9
"""Spark takes what it knows nothing of to be larger than anything."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Statistics, and the relations of which they are a guess."""

    statistics: list[RelationStatistics]
    guessed: tuple[str, ...] = ()


def collect(
    view: ComputeView,
    sources: Mapping[str, DataFrame],
    files: Mapping[str, tuple[str, ...]],
    *,
    sample: float | None,
    is_needed: bool,
    processors: int,
) -> Collected:
    """`files` are the local Parquet files of sources that consist of them; `is_needed` allows a Spark job."""
    if sample is None and all(one.source in files for one in view.relations):
        relations = [
            _file_relation(view, index, sources[one.source], files[one.source])
            for index, one in enumerate(view.relations)
        ]
        with Footers(relations) as footers:
            limit = statistics_seconds(expected_seconds(footers.rows, processors))
            return Collected(footers.statistics(limit, time.perf_counter))
    frames = read_relations(view, sources)
    if sample is not None or is_needed:
        return Collected(collect_statistics(view, frames, sample=1.0 if sample is None else sample))
    guessed = tuple(one.alias for one in view.relations if one.source not in files)
    made = [_guess(view, index, frame) for index, frame in enumerate(frames)]
    return Collected(made, guessed)


def local_files(names: Sequence[str]) -> tuple[str, ...] | None:
    """The paths of a relation's files; None where they are elsewhere, or where there are none."""
    if not names or any(not name.startswith("file:///") for name in names):
        return None
    return tuple(sorted(unquote(urlsplit(name).path) for name in names))


def _file_relation(
    view: ComputeView, index: int, source: DataFrame, files: tuple[str, ...]
) -> ParquetRelation:
    one = view.relations[index]
    known = {quoted(name): name for name in source.columns}
    return ParquetRelation(
        files,
        tuple((column.name, known.get(column.expression)) for column in one.columns),
        frozenset(name for key in view.keys for member, name in key.members if member == index),
        one.filter,
    )


def _guess(view: ComputeView, index: int, frame: DataFrame) -> RelationStatistics:
    one: ReadRelation = view.relations[index]
    stats = frame._jdf.queryExecution().optimizedPlan().stats()
    row_bytes = float(SLOT_BYTES * (len(one.columns) + 1))
    rows = round(min(float(str(stats.sizeInBytes())) / row_bytes, MOST_GUESSED_ROWS))
    keys = {
        name: KeySketch(None, rows, float(rows))
        for key in view.keys
        for member, name in key.members
        if member == index
    }
    return RelationStatistics(rows, row_bytes, keys)
