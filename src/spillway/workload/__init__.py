"""Generated input: the streams that tests, benchmarks, the simulator and the demo share.

Everything here is a pure function of its parameters and of row numbers, so that any slice of a stream can be
made anywhere, twice, and come out the same. Needs numpy and Arrow; knows nothing of Spark or of state.
"""

from spillway.workload.files import write_streams
from spillway.workload.rows import count_results, rows
from spillway.workload.uniform import UniformJoin
from spillway.workload.workload import Alternation, PartitionClass, Workload

__all__ = [
    "Alternation",
    "PartitionClass",
    "UniformJoin",
    "Workload",
    "count_results",
    "rows",
    "write_streams",
]
