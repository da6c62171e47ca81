"""A running query: batches of its input become epochs of the engine.

Contract: epochs never overlap, and the manifest alone says which batches are taken in. Start with `query`,
then `epoch`; `wire` says how rows reach the processors, `input` where batches come from.
"""

from spillway.spark.stream.batch_reader import native_scans
from spillway.spark.stream.epoch import Quotas, SparkEpoch
from spillway.spark.stream.host_check import check_hosts, remove_images
from spillway.spark.stream.input_choice import open_input, reads_by_loop
from spillway.spark.stream.loop_inputs import listed_inputs
from spillway.spark.stream.places import Places
from spillway.spark.stream.query import Listener, Query
from spillway.spark.stream.scan import ScanAhead
from spillway.spark.stream.wire import Wire, bind

__all__ = [
    "Listener",
    "Places",
    "Query",
    "Quotas",
    "ScanAhead",
    "SparkEpoch",
    "Wire",
    "bind",
    "check_hosts",
    "listed_inputs",
    "native_scans",
    "open_input",
    "reads_by_loop",
    "remove_images",
]
