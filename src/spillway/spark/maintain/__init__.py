"""Maintenance with Spark: tables that answer by Spark jobs, and the algebra of large deltas.

Contract: the same answers as the databases in `maintain.sources` give. Start with `spark_server`.
"""

from spillway.spark.maintain.compute_load import ComputeLoad
from spillway.spark.maintain.spark_algebra import SparkAlgebra
from spillway.spark.maintain.spark_server import SparkServer

__all__ = ["ComputeLoad", "SparkAlgebra", "SparkServer"]
