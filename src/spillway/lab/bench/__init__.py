"""Benchmarks: named workloads, the engines that run them, and the comparison.

Contract: engines get the same data and take turns; metrics are one JSON object. Start with `registry`; to
add a benchmark, write a module with a function and add its line there.
"""

from spillway.lab.bench.compute import RELATIONS, bench_compute
from spillway.lab.bench.compute_memory import tree_sum
from spillway.lab.bench.compute_metrics import ENGINES
from spillway.lab.bench.epoch import bench_epoch
from spillway.lab.bench.join import bench_join
from spillway.lab.bench.latency import bench_latency
from spillway.lab.bench.maintain import bench_maintain
from spillway.lab.bench.maintain_data import postgres_servers
from spillway.lab.bench.maintain_tables import bench_tables
from spillway.lab.bench.registry import BENCHMARKS
from spillway.lab.bench.relocation import SETTINGS, bench_relocation
from spillway.lab.bench.scarce import bench_scarce
from spillway.lab.bench.spill import bench_spill
from spillway.lab.bench.spill_variant import DEFERRED
from spillway.lab.bench.start import bench_start
from spillway.lab.bench.tpch import DEFAULT_QUERIES, bench_tpch

__all__ = [
    "BENCHMARKS",
    "DEFAULT_QUERIES",
    "DEFERRED",
    "ENGINES",
    "RELATIONS",
    "SETTINGS",
    "bench_compute",
    "bench_epoch",
    "bench_join",
    "bench_latency",
    "bench_maintain",
    "bench_relocation",
    "bench_scarce",
    "bench_spill",
    "bench_start",
    "bench_tables",
    "bench_tpch",
    "postgres_servers",
    "tree_sum",
]
