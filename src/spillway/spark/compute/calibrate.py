"""Unit costs from differences: pairs of small computations that differ in one phase only.

Each is run `REPEATS` times after a warm-up and the fastest counts, because a machine is disturbed in one
direction only. Times are multiplied by the processors: work is in seconds of one processor. A difference that
comes out below zero counts as a small positive cost.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spillway.compute.compute_view import ComputeView, read_view
from spillway.compute.cost import CostModel, Machine
from spillway.compute.join_graph import JoinGraph, KeyClass, Relation
from spillway.compute.tree import Segment
from spillway.compute.unit_costs import UnitCosts
from spillway.spark.compute.execution import Execution
from spillway.spark.sources import columns_of
from spillway.view import View

REPEATS = 3
TABLES = 7
SMALL_ROWS = 100
PAYLOAD_BYTES = 24
_FLOOR = 1e-9


def measure_costs(spark: SparkSession, rows: int, note: Callable[[str], None]) -> UnitCosts:
    """The unit costs of this session's machine."""
    with tempfile.TemporaryDirectory(prefix="spillway-calibrate-") as scratch:
        bench = _Bench(spark, Path(scratch), rows)
        return _costs(bench, rows, spark.sparkContext.defaultParallelism, note)


def _costs(bench: "_Bench", rows: int, processors: int, note: Callable[[str], None]) -> UnitCosts:
    small = list(range(1, TABLES))
    bench.seconds(Segment(0, tuple(small)))  # warm-up
    note("measuring: starting hash tables and segments")
    one = bench.seconds(Segment(1, (2,)))
    many = bench.seconds(Segment(1, tuple(small[1:])))
    nested = bench.seconds(Segment(1, (2, Segment(3, (4,)))))
    flat = bench.seconds(Segment(1, (2, 3, 4)))
    note("measuring: reading and probing")
    large_one = bench.seconds(Segment(0, (1,)))
    large_many = bench.seconds(Segment(0, tuple(small)))
    note("measuring: building, partitioning, keeping")
    built = bench.seconds(Segment(1, (0,)))
    redirected = bench.seconds(Segment(0, (1, 2)), partitioned=True)
    kept = bench.seconds(Segment(1, (2, Segment(0, (3,)))))
    row_bytes = bench.row_bytes
    launch = _positive((many - one) / (len(small) - 2)) * processors
    setup = _positive(nested - flat) * processors
    probe = _positive((large_many - large_one) / (len(small) - 1) / rows) * processors
    read = _positive((large_one - one) / rows - probe / processors) * processors
    build_all = _positive((built - one) / rows) * processors - read
    moved = _positive((redirected - large_one) / rows) * processors
    partition = moved / 2
    network = moved / 2 / row_bytes
    keep = _positive((kept - built) / rows / row_bytes) * processors
    build = max(build_all - network * row_bytes, build_all / 4, _FLOOR)
    return UnitCosts(read, partition, network, build, probe, keep, setup, launch)


class _Bench:
    """A large relation and small ones, all joined on one key; few rows come out of any join."""

    def __init__(self, spark: SparkSession, directory: Path, rows: int) -> None:
        self._spark, self._directory = spark, directory
        self._sources: dict[str, DataFrame] = {}
        sizes = [rows] + [SMALL_ROWS] * (TABLES - 1)
        for number, size in enumerate(sizes):
            path = directory / f"t{number}.parquet"
            pq.write_table(_table(size, number), path)
            self._sources[f"t{number}"] = spark.read.parquet(str(path))
        joins = "".join(f" JOIN t{n} ON t0.k = t{n}.k" for n in range(1, TABLES))
        items = ", ".join(f"t{n}.p AS p{n}" for n in range(TABLES))
        catalog = {name: columns_of(frame) for name, frame in self._sources.items()}
        self._view = read_view(View.sql(f"SELECT {items} FROM t0{joins}"), catalog)
        self.row_bytes = 8 * 3 + PAYLOAD_BYTES
        relations = tuple(Relation(f"t{n}", float(size), self.row_bytes) for n, size in enumerate(sizes))
        members = tuple(range(TABLES))
        shares = {(a, b): 1 / rows for a in members for b in members if a < b}
        self._graph = JoinGraph(relations, (KeyClass(members, shares),))

    def seconds(self, tree: Segment, *, partitioned: bool = False) -> float:
        """The fastest of some runs of a part of the view."""
        limit = 0.0 if partitioned else 1e12
        processors = self._spark.sparkContext.defaultParallelism
        # With a free network a table is replicated whenever it may be.
        machine = Machine(processors, replicate_bytes=limit)
        model = CostModel(self._graph, UnitCosts(network=0.0), machine)
        best = float("inf")
        for _ in range(REPEATS):
            execution = Execution(self._spark, _part(self._view, tree), model, self._sources, self._directory)
            execution.prepare()
            began = time.perf_counter()
            execution.run(tree, lambda frame: frame.write.format("noop").mode("overwrite").save())
            best = min(best, time.perf_counter() - began)
        return best


def _part(view: ComputeView, tree: Segment) -> ComputeView:
    """The view without the columns of relations that a tree leaves out."""
    kept = tuple(output for number, output in enumerate(view.outputs) if tree.mask & 1 << number)
    return replace(view, outputs=kept)


def _table(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    letters = random.integers(97, 123, size=rows * PAYLOAD_BYTES, dtype=np.uint8).tobytes()
    offsets = np.arange(0, rows * PAYLOAD_BYTES + 1, PAYLOAD_BYTES, dtype=np.int32)
    payload = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))
    return pa.table({"k": pa.array(random.permutation(rows)), "p": payload})


def _positive(seconds: float) -> float:
    return max(seconds, _FLOOR)
