"""Maintenance with Spark: tables that answer by Spark jobs, and the algebra of large deltas."""

from spillway.spark.maintain.compute_load import ComputeLoad
from spillway.spark.maintain.spark_algebra import SparkAlgebra
from spillway.spark.maintain.spark_server import SparkServer

__all__ = ["ComputeLoad", "SparkAlgebra", "SparkServer"]
