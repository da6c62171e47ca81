"""Runs a compute experiment: all trees on the same queries, the fastest of two runs counts."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from pyspark.sql import SparkSession

from spillway.compute import ComputeConfig, TreeCost, UnitCosts
from spillway.compute.trees import right_deep_tree
from spillway.errors import StateError
from spillway.job import SourceSpec
from spillway.lab.bench import tree_sum
from spillway.lab.engines import noop
from spillway.lab.paper.compute import ComputeExperiment, Point, outcome_dict
from spillway.spark.compute import Computation, plan_computation, table_bytes_peak
from spillway.workload import MultiJoin, generate_query

REPEATS = 2


def run_compute_experiment(
    spark: SparkSession, experiment: ComputeExperiment, units: UnitCosts, note: Callable[[str], None]
) -> dict[str, Any]:
    """Average seconds by line and position."""
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    tables: dict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory(prefix="spillway-figure-") as scratch:
        runner = _Runner(spark, units, Path(scratch), experiment.memory_share)
        runner.point(replace(experiment.points[0], seeds=(1001,)), defaultdict(list), defaultdict(int))
        for point in experiment.points:
            runner.point(point, seconds, tables)
            for line in point.lines:
                note(f"{point.x}: {line.label} {fmean(seconds[line.label, point.x]):.2f} s")
    return outcome_dict(experiment, {key: fmean(values) for key, values in seconds.items()}, tables)


class _Runner:
    def __init__(
        self, spark: SparkSession, units: UnitCosts, scratch: Path, memory_share: float | None
    ) -> None:
        self._spark, self._units, self._scratch = spark, units, scratch
        self._memory_share = memory_share

    def point(
        self, point: Point, seconds: dict[tuple[str, str], list[float]], tables: dict[str, int]
    ) -> None:
        for seed in point.seeds:
            query = generate_query(point.relations, seed)
            data = self._scratch / f"{point.relations}-{seed}-{point.files}"
            if not data.exists():
                query.write(data, point.files)
            model, computation = self._prepare(query, data)
            results = set()
            for line in point.lines:
                tree = line.make(model)
                plan = computation.plan.with_tree(tree, model)
                best = float("inf")
                for _ in range(REPEATS):
                    executor = computation.executor(plan, self._scratch)
                    executor.prepare()
                    began = time.perf_counter()
                    executor.run(noop)
                    best = min(best, time.perf_counter() - began)
                outcomes = executor.outcomes()
                results.add(tree_sum(computation, model, tree, self._scratch))
                seconds[line.label, point.x].append(best)
                if self._memory_share is not None and model.machine.memory_bytes is not None:
                    above = table_bytes_peak(outcomes) - model.machine.memory_bytes
                    tables[line.label] = max(tables[line.label], round(above))
            if len(results) != 1:
                raise StateError(f"query {seed} of {point.relations} relations: trees disagree: {results}")

    def _prepare(self, query: MultiJoin, data: Path) -> tuple[TreeCost, Computation]:
        specs = {
            relation.name: SourceSpec(relation.name, "parquet", str(data / relation.name))
            for relation in query.relations
        }
        computation = plan_computation(
            self._spark, query.sql, specs, ComputeConfig(tree="right-deep"), units=self._units
        )
        model = computation.plan.cost
        if self._memory_share is None:
            return model, computation
        memory = model.memory_bytes(right_deep_tree(model)) * self._memory_share
        machine = replace(model.machine, memory_bytes=memory, replicate_bytes=memory, by_columns=False)
        return TreeCost(model.graph, self._units, machine), computation
