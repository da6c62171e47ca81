"""Benchmarks: named workloads, the peers that run them, and the comparison.

Every engine runs in a process of its own over the same files, is timed from query start to query end, and
answers with one JSON line.
"""

from spillway.bench.compare import compare
from spillway.bench.engine_process import run_subprocess
from spillway.bench.peer_result import PeerResult
from spillway.bench.peers import duckdb_argv, spark_argv

__all__ = ["PeerResult", "compare", "duckdb_argv", "run_subprocess", "spark_argv"]
