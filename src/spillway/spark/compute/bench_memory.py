"""A query with memory for a part of its hash tables: pieces run one after the other (dissertation, 3.3)."""

import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from spillway.bench.compute_figures import ShortMemory
from spillway.bench.time_limit import within
from spillway.compute.cost import CostModel
from spillway.compute.trees.choose import choose
from spillway.compute.trees.right_deep import right_deep
from spillway.compute.unit_costs import UnitCosts
from spillway.spark.compute.computation import Computation, table_bytes_peak
from spillway.spark.compute.execution import Execution
from spillway.spark.compute.peer import noop

MEMORY_SHARE = 1 / 3
"""Of what the hash tables of the right-deep tree take, all of which it needs together."""


def short_memory(
    spark: SparkSession,
    computation: Computation,
    units: UnitCosts,
    scratch: Path,
    limit_seconds: float,
) -> ShortMemory:
    """One run of the tree that is chosen for a third of the memory."""
    model = computation.model
    memory = model.memory_bytes(right_deep(model)) * MEMORY_SHARE
    machine = replace(model.machine, memory_bytes=memory, replicate_bytes=memory, by_columns=False)
    short = CostModel(model.graph, units, machine)
    plan = choose(short)
    execution = Execution(spark, computation.view, short, computation.sources, scratch)
    execution.prepare()
    began = time.perf_counter()
    within(limit_seconds, lambda: execution.run(plan.tree, noop), execution.cancel)
    seconds = time.perf_counter() - began
    outcomes = execution.outcomes()
    return ShortMemory(
        memory_bytes=round(memory),
        table_bytes_peak=table_bytes_peak(outcomes),
        statements=len({one.statement for one in outcomes}),
        rows=outcomes[-1].step_rows[-1] or 0,
        seconds=round(seconds, 4),
        tree=plan.algorithm,
    )
