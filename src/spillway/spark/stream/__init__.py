"""A running query: Spark's micro-batches become epochs of the engine.

Contract: epochs never overlap, and the manifest alone says which batches are taken in. Start with `query`,
then `epoch`; `wire` says how rows reach the processors.
"""

from spillway.spark.stream.batch_rows import BatchRows, FrameBatch
from spillway.spark.stream.epoch import Quotas, SparkEpoch
from spillway.spark.stream.host_check import check_hosts, remove_images
from spillway.spark.stream.places import Places
from spillway.spark.stream.query import Listener, Query
from spillway.spark.stream.run_ahead import can_run_again, rewind
from spillway.spark.stream.scan import ScanAhead
from spillway.spark.stream.wire import Wire, bind

__all__ = [
    "BatchRows",
    "FrameBatch",
    "Listener",
    "Places",
    "Query",
    "Quotas",
    "ScanAhead",
    "SparkEpoch",
    "Wire",
    "bind",
    "can_run_again",
    "check_hosts",
    "remove_images",
    "rewind",
]
