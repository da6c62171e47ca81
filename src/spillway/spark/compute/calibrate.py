"""Unit costs from differences: pairs of small computations that differ in one phase only.

Each runs `REPEATS` times after a warm-up and the fastest run counts, because other load only makes runs
slower. As many tasks as processors read the large relation, so time multiplied by the processors is work in
seconds of one processor; only hash tables are built by a single processor. A negative difference counts as a
small positive cost.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spillway.compute import (
    STATEMENTS,
    ComputePlan,
    ComputeView,
    JoinGraph,
    JoinKey,
    Machine,
    Relation,
    Segment,
    TreeCost,
    UnitCosts,
    read_view,
    spark_seconds,
)
from spillway.compute.trees import proposal_of
from spillway.model import View
from spillway.spark.compute.executor import RunContext
from spillway.spark.compute.statements import StatementExecutor
from spillway.spark.sources import columns_of

REPEATS = 3
TABLES = 7
SMALL_ROWS = 100
PAYLOAD_BYTES = 24
ROW_BYTES = 8 * 4 + PAYLOAD_BYTES
FEW, ALL = "k", "s"
"""Keys by which few rows of the large relation find a match, or all of them."""
_FLOOR = 1e-9


def measure_costs(spark: SparkSession, rows: int, note: Callable[[str], None]) -> UnitCosts:
    """The unit costs of this session's machine."""
    with tempfile.TemporaryDirectory(prefix="spillway-calibrate-") as scratch:
        bench = _write_bench(spark, Path(scratch), rows)
        return _costs(bench, rows, spark.sparkContext.defaultParallelism, note)


def _costs(bench: "_Bench", rows: int, processors: int, note: Callable[[str], None]) -> UnitCosts:
    small = tuple(range(1, TABLES))
    for key in (FEW, ALL):
        bench.seconds(Segment(0, small), key)  # warm-up
    note("measuring: starting hash tables and statements")
    single = bench.seconds(Segment(1, (2,)), FEW)
    many = bench.seconds(Segment(1, small[1:]), FEW)
    nested = Segment(1, (2, Segment(3, (4,))))
    setup = _positive(bench.seconds(nested, FEW, memory_bytes=1.0) - bench.seconds(nested, FEW)) * processors
    launch = _positive((many - single) / (len(small) - 2)) * processors
    note("measuring: reading and probing")
    few = bench.seconds(Segment(0, (1,)), FEW)
    all_once, all_often = bench.seconds(Segment(0, (1,)), ALL), bench.seconds(Segment(0, small), ALL)
    probe = _positive(((all_often - all_once) * processors - launch * (len(small) - 1)) / rows) / (
        len(small) - 1
    )
    read = _positive((few - single) * processors / rows - probe)
    note("measuring: building, partitioning, keeping")
    built = bench.seconds(Segment(1, (0,)), FEW)
    redirected = bench.seconds(Segment(0, (1,)), FEW, replicate_bytes=0.0)
    large = Segment(1, (2, Segment(0, (3,))))
    kept = bench.seconds(large, ALL, memory_bytes=1.0) - bench.seconds(large, ALL)
    moved = _positive((redirected - few) * processors / rows)
    partition, network = moved / 2, moved / 2 / ROW_BYTES
    building = _positive((built - single) / rows - read / processors)
    build = max(building - network * ROW_BYTES * processors, building / 4, _FLOOR)
    keep = _positive((kept * processors - setup) / rows / ROW_BYTES)
    return UnitCosts(read, partition, network, build, probe, keep, setup, launch)


@dataclass(frozen=True, slots=True)
class _Bench:
    """A large relation and small ones, joined on one of two keys."""

    context: RunContext
    views: Mapping[str, ComputeView]
    graph: JoinGraph

    def seconds(
        self, tree: Segment, key: str, *, replicate_bytes: float = 1e12, memory_bytes: float | None = None
    ) -> float:
        """The fastest of some runs of a part of a view."""
        processors = self.context.spark.sparkContext.defaultParallelism
        # If the network costs nothing, a table is replicated whenever that is allowed.
        cost = TreeCost(
            self.graph, UnitCosts(network=0.0), Machine(processors, memory_bytes, replicate_bytes)
        )
        plan = ComputePlan(
            _part(self.views[key], tree),
            STATEMENTS,
            "calibration",
            proposal_of(cost, "calibration", tree),
            cost,
            cost,
            spark_seconds(cost),
        )
        best = float("inf")
        for _ in range(REPEATS):
            executor = StatementExecutor(self.context, plan)
            executor.prepare()
            began = time.perf_counter()
            executor.run(lambda frame: frame.write.format("noop").mode("overwrite").save())
            best = min(best, time.perf_counter() - began)
        return best


def _write_bench(spark: SparkSession, directory: Path, rows: int) -> _Bench:
    sources: dict[str, DataFrame] = {}
    sizes = [rows] + [SMALL_ROWS] * (TABLES - 1)
    for number, size in enumerate(sizes):
        path = directory / f"t{number}"
        path.mkdir()
        table = _table(size, number)
        pieces = spark.sparkContext.defaultParallelism if number == 0 else 1
        for piece in range(pieces):
            share = table.slice(piece * size // pieces, -(-size // pieces))
            pq.write_table(share, path / f"part-{piece}.parquet")
        sources[f"t{number}"] = spark.read.parquet(str(path))
    catalog = {name: columns_of(frame) for name, frame in sources.items()}
    items = ", ".join(f"t{n}.p AS p{n}" for n in range(TABLES))
    views: dict[str, ComputeView] = {}
    for key in (FEW, ALL):
        joins = "".join(f" JOIN t{n} ON t0.{key} = t{n}.{key}" for n in range(1, TABLES))
        views[key] = read_view(View.sql(f"SELECT {items} FROM t0{joins}"), catalog)
    relations = tuple(Relation(f"t{n}", float(size), ROW_BYTES) for n, size in enumerate(sizes))
    members = tuple(range(TABLES))
    shares = {(a, b): 1 / SMALL_ROWS for a in members for b in members if a < b}
    context = RunContext(spark, sources, {}, scratch=directory)
    return _Bench(context, views, JoinGraph(relations, (JoinKey(members, shares),)))


def _part(view: ComputeView, tree: Segment) -> ComputeView:
    """The view without the columns of relations that a tree leaves out."""
    kept = tuple(output for number, output in enumerate(view.outputs) if tree.mask & 1 << number)
    return replace(view, outputs=kept)


def _table(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    letters = random.integers(97, 123, size=rows * PAYLOAD_BYTES, dtype=np.uint8).tobytes()
    offsets = np.arange(0, rows * PAYLOAD_BYTES + 1, PAYLOAD_BYTES, dtype=np.int32)
    payload = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))
    keys = random.permutation(rows)
    return pa.table({FEW: pa.array(keys), ALL: pa.array(keys % SMALL_ROWS), "p": payload})


def _positive(seconds: float) -> float:
    return max(seconds, _FLOOR)
