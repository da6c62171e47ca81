"""Generated input: the streams that tests, benchmarks and the demo share.

Contract: a pure function of parameters and row numbers, so any slice of a stream can be generated anywhere,
repeatedly, with the same result. Needs numpy and Arrow; knows nothing of Spark or state. Start with
`workload`.
"""

from spillway.workload.files import write_stream, write_streams
from spillway.workload.multi_join import RESULT_ROWS, ROWS, MultiJoin, generate_query
from spillway.workload.options import StreamOptions, parse_options
from spillway.workload.row_slices import count_results, keys, rows
from spillway.workload.stocks import STOCK_QUERY_SQL, STOCK_SCHEMAS_SQL, STOCK_VIEW_SQL, write_stock_streams
from spillway.workload.tpch import QUERIES, STREAM_TREES, tables_of, tables_read
from spillway.workload.tree_workload import SCHEMA_SQL, STREAMS, TREE, VIEW, TreeWorkload
from spillway.workload.uniform import UniformJoin
from spillway.workload.workload import Workload

__all__ = [
    "QUERIES",
    "RESULT_ROWS",
    "ROWS",
    "SCHEMA_SQL",
    "STOCK_QUERY_SQL",
    "STOCK_SCHEMAS_SQL",
    "STOCK_VIEW_SQL",
    "STREAMS",
    "STREAM_TREES",
    "TREE",
    "VIEW",
    "MultiJoin",
    "StreamOptions",
    "TreeWorkload",
    "UniformJoin",
    "Workload",
    "count_results",
    "generate_query",
    "keys",
    "parse_options",
    "rows",
    "tables_of",
    "tables_read",
    "write_stock_streams",
    "write_stream",
    "write_streams",
]
