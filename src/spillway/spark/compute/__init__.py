"""Computes views over stored relations on Spark: opens them, collects statistics, plans, runs, writes.

Contract: the result is there as a whole or not at all. Start with `computation`: it has a plan made by
`spillway.compute` and runs it by the executor of its way: `columns`, `statements` or `own_plan`.
"""

from spillway.spark.compute.calibrate import measure_costs
from spillway.spark.compute.computation import Computation, plan_computation
from spillway.spark.compute.executor import SegmentOutcome, table_bytes_peak
from spillway.spark.compute.segment_progress import Listener, SegmentEvent

__all__ = [
    "Computation",
    "Listener",
    "SegmentEvent",
    "SegmentOutcome",
    "measure_costs",
    "plan_computation",
    "table_bytes_peak",
]
