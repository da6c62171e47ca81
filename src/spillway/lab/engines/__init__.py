"""Engines that run the same workload: Spillway, Spark's own joins, DuckDB; each in its own process.

Contract: every engine reads the same files, is timed from query start to end, and answers with one JSON
line. Start with `process`, which starts them, then `turns`.
"""

from spillway.lab.engines.data import SHAPES, STREAMS, VIEW, VIEW_OF_KEYS, write_join_data
from spillway.lab.engines.peers import STORES, duckdb_argv, spark_argv, spillway_argv
from spillway.lab.engines.process import GRACE_SECONDS, EngineProcess, run_subprocess
from spillway.lab.engines.result import (
    DUCKDB,
    SPARK_ROCKSDB,
    SPILLWAY,
    PeerResult,
    compare,
    median_run,
    results_agree,
)
from spillway.lab.engines.result_sum import NULL, ResultSum, parquet_sum, query_sum
from spillway.lab.engines.spark_compute import SparkPeer, noop
from spillway.lab.engines.time_limit import TimeIsOverError, within
from spillway.lab.engines.turns import Turn, reason, take_turns

__all__ = [
    "DUCKDB",
    "GRACE_SECONDS",
    "NULL",
    "SHAPES",
    "SPARK_ROCKSDB",
    "SPILLWAY",
    "STORES",
    "STREAMS",
    "VIEW",
    "VIEW_OF_KEYS",
    "EngineProcess",
    "PeerResult",
    "ResultSum",
    "SparkPeer",
    "TimeIsOverError",
    "Turn",
    "compare",
    "duckdb_argv",
    "median_run",
    "noop",
    "parquet_sum",
    "query_sum",
    "reason",
    "results_agree",
    "run_subprocess",
    "spark_argv",
    "spillway_argv",
    "take_turns",
    "within",
    "write_join_data",
]
