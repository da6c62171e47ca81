"""Computes views over stored relations on Spark: opening them, statistics, segments as jobs, the result.

Start with `computation`; `execution`, `columnar_run` and `own_plan` are the three ways.
"""

from spillway.spark.compute.calibrate import measure_costs
from spillway.spark.compute.computation import Computation, table_bytes_peak
from spillway.spark.compute.execution import Execution, Listener, SegmentEvent, SegmentOutcome
from spillway.spark.compute.segment_sql import quoted

__all__ = [
    "Computation",
    "Execution",
    "Listener",
    "SegmentEvent",
    "SegmentOutcome",
    "measure_costs",
    "quoted",
    "table_bytes_peak",
]
