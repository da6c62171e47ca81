"""The plan of a computation without Spark, where all relations are local Parquet files or Delta tables."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from spillway.catalog.place import check_settings
from spillway.catalog.stored.files import relation_files
from spillway.catalog.stored.footers import footer_statistics
from spillway.catalog.stored.relations import check_files, read_relation
from spillway.catalog.stored.resources import session_resources
from spillway.catalog.stored.statistics_cache import StatisticsCache
from spillway.compute import (
    ComputeConfig,
    ComputePlan,
    PlanFacts,
    UnitCosts,
    can_join_columns,
    choose_plan,
    read_view,
)
from spillway.job import SPARK_DEFAULTS, SourceSpec
from spillway.model import View
from spillway.plan.typing import NeedsSparkError


def plan_stored(
    view: View,
    sources: Mapping[str, SourceSpec],
    config: ComputeConfig,
    units: UnitCosts | None,
    settings: Mapping[str, str],
) -> dict[str, Any]:
    """The plan's report, as `Computation.report` gives it; `settings` are the job's for Spark."""
    check_settings(settings, os.environ)
    session = SPARK_DEFAULTS | dict(settings)
    if config.sample is not None:
        raise NeedsSparkError("[compute] sample asks for a sample that Spark draws")
    resources = session_resources(session)
    relations = {name: read_relation(spec) for name, spec in sources.items()}
    catalog = {name: relation.columns for name, relation in relations.items()}
    parts = read_view(view, catalog)
    specs = {relation.source: sources[relation.source] for relation in parts.relations}
    for name, spec in specs.items():
        if spec.format.lower() == "parquet":
            check_files(parts, name, relations[name])
    began = time.perf_counter()
    files = relation_files({name: relations[name].names for name in specs}, specs, catalog, is_local=True)
    cache = StatisticsCache.of(parts, files.names, specs, config.sample)
    processors = config.processors or resources.processors
    statistics = cache.statistics(lambda: footer_statistics(parts, catalog, files.local, processors))
    collected_at = time.perf_counter()
    plan = choose_plan(
        PlanFacts(
            view=parts,
            statistics=statistics,
            resources=resources,
            config=config,
            can_join_columns=can_join_columns(parts, catalog, files.plain),
            units=units,
            memory_factors=cache.factors(),
        )
    )
    return timed_report(plan, collected_at - began, time.perf_counter() - collected_at)


def timed_report(
    plan: ComputePlan,
    statistics_seconds: float,
    planning_seconds: float,
    measured: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The plan as plain values, for JSON, with the time that it took, and what a run measured."""
    return {
        **plan.report(measured),
        "planning_seconds": round(planning_seconds, 4),
        "statistics_seconds": round(statistics_seconds, 4),
    }
