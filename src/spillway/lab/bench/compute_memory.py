"""A query with memory for a part of its hash tables: pieces run one after the other (dissertation, 3.3)."""

import time
from dataclasses import replace
from pathlib import Path

from spillway.compute import Segment, TreeCost, UnitCosts
from spillway.compute.trees import choose, right_deep_tree
from spillway.lab.bench.compute_claims import BUSHY_PIECES, DEEP_PIECES
from spillway.lab.bench.compute_metrics import ShortMemory
from spillway.lab.bench.frame_sum import SummingWriter
from spillway.lab.engines import ResultSum, TimeIsOverError, noop, within
from spillway.spark.compute import Computation, SegmentOutcome, table_bytes_peak

MEMORY_SHARE = 1 / 3
"""Of what the hash tables of the right-deep tree take, all of which it needs together."""


def short_memory(
    computation: Computation, units: UnitCosts, scratch: Path, limit_seconds: float
) -> ShortMemory:
    """One run of the tree that is chosen for a third of the memory, and of the two shapes of figure 3.13."""
    model = computation.plan.cost
    memory = model.memory_bytes(right_deep_tree(model)) * MEMORY_SHARE
    machine = replace(model.machine, memory_bytes=memory, replicate_bytes=memory, by_columns=False)
    short = TreeCost(model.graph, units, machine)
    plan = choose(short)
    seconds, outcomes = _run(computation, short, plan.tree, scratch, limit_seconds)
    known = {plan.tree: seconds}
    shapes: dict[str, float] = {}
    stopped: list[str] = []
    for name in (DEEP_PIECES, BUSHY_PIECES):
        tree = choose(short, name).tree
        try:
            if tree not in known:
                known[tree], _ = _run(computation, short, tree, scratch, limit_seconds)
            shapes[name] = known[tree]
        except TimeIsOverError:
            stopped.append(name)
    return ShortMemory(
        memory_bytes=round(memory),
        table_bytes_peak=table_bytes_peak(outcomes),
        statements=len({one.statement for one in outcomes}),
        rows=outcomes[-1].step_rows[-1] or 0,
        seconds=seconds,
        tree=plan.algorithm,
        shape_seconds=shapes,
        stopped_shapes=tuple(stopped),
        checksum=tree_sum(computation, short, plan.tree, scratch).checksum,
    )


def tree_sum(computation: Computation, model: TreeCost, tree: Segment, scratch: Path) -> ResultSum:
    """What the results of a tree amount to, from one more run of it, which is not measured."""
    writer = SummingWriter()
    computation.executor(computation.plan.with_tree(tree, model), scratch).run(writer)
    assert writer.found is not None
    return writer.found


def _run(
    computation: Computation, model: TreeCost, tree: Segment, scratch: Path, limit_seconds: float
) -> tuple[float, list[SegmentOutcome]]:
    executor = computation.executor(computation.plan.with_tree(tree, model), scratch)
    executor.prepare()
    began = time.perf_counter()
    within(limit_seconds, lambda: executor.run(noop), executor.cancel)
    return round(time.perf_counter() - began, 4), executor.outcomes()
