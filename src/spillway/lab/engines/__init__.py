"""Engines that run the same workload: Spillway, Spark's own joins, DuckDB, Flink, Pathway; each in a process.

Contract: every engine reads the same rows, is timed from query start to end, and answers with one JSON
line. Start with `process`, which starts them, then `turns`.
"""

from spillway.lab.engines.data import SHAPES, STREAMS, VIEW, VIEW_OF_KEYS, write_join_data
from spillway.lab.engines.epoch_data import write_fresh_keys
from spillway.lab.engines.foreign import FOREIGN, prepare_flink_live, prepare_foreign
from spillway.lab.engines.live import (
    ARRIVALS_NAME,
    VISIBLE_NAME,
    LiveJob,
    Schedule,
    expected_sum,
    write_waiting,
)
from spillway.lab.engines.multiset import MultisetDifference, multiset_difference
from spillway.lab.engines.peers import (
    STORES,
    bare_pyspark_argv,
    duckdb_argv,
    spark_argv,
    spillway_argv,
    tpch_argv,
)
from spillway.lab.engines.process import GRACE_SECONDS, EngineProcess, run_subprocess
from spillway.lab.engines.processor_time import ProcessorTime
from spillway.lab.engines.result import (
    DUCKDB,
    FLINK,
    SPARK_DEFAULT,
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
from spillway.lab.engines.tpch_data import generate_tables, split_table
from spillway.lab.engines.turns import Turn, reason, take_turns

__all__ = [
    "ARRIVALS_NAME",
    "DUCKDB",
    "FLINK",
    "FOREIGN",
    "GRACE_SECONDS",
    "NULL",
    "SHAPES",
    "SPARK_DEFAULT",
    "SPARK_ROCKSDB",
    "SPILLWAY",
    "STORES",
    "STREAMS",
    "VIEW",
    "VIEW_OF_KEYS",
    "VISIBLE_NAME",
    "EngineProcess",
    "LiveJob",
    "MultisetDifference",
    "PeerResult",
    "ProcessorTime",
    "ResultSum",
    "Schedule",
    "SparkPeer",
    "TimeIsOverError",
    "Turn",
    "bare_pyspark_argv",
    "compare",
    "duckdb_argv",
    "expected_sum",
    "generate_tables",
    "median_run",
    "multiset_difference",
    "noop",
    "parquet_sum",
    "prepare_flink_live",
    "prepare_foreign",
    "query_sum",
    "reason",
    "results_agree",
    "run_subprocess",
    "spark_argv",
    "spillway_argv",
    "split_table",
    "take_turns",
    "tpch_argv",
    "within",
    "write_fresh_keys",
    "write_join_data",
    "write_waiting",
]
