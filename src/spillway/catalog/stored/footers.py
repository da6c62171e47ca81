"""Statistics of a view's relations from their local Parquet files: footers, then samples of rows."""

from __future__ import annotations

import time
from collections.abc import Mapping

from spillway.compute import (
    ComputeView,
    Footers,
    ParquetRelation,
    RelationStatistics,
    expected_seconds,
    quoted,
    statistics_seconds,
)
from spillway.model import Catalog


def footer_statistics(
    view: ComputeView, catalog: Catalog, files: Mapping[str, tuple[str, ...]], processors: int
) -> list[RelationStatistics]:
    """One entry per relation, within a small part of the time that the computation is expected to take."""
    relations = [_relation(view, number, catalog, files) for number in range(len(view.relations))]
    with Footers(relations) as footers:
        limit = statistics_seconds(expected_seconds(footers.rows, processors))
        return footers.statistics(limit, time.perf_counter)


def _relation(
    view: ComputeView, index: int, catalog: Catalog, files: Mapping[str, tuple[str, ...]]
) -> ParquetRelation:
    relation = view.relations[index]
    known = {quoted(column.name): column.name for column in catalog[relation.source]}
    return ParquetRelation(
        files[relation.source],
        tuple((column.name, known.get(column.expression)) for column in relation.columns),
        frozenset(name for key in view.keys for member, name in key.members if member == index),
        relation.filter,
    )
