"""Sinks: where the results of committed epochs go, each exactly once where the target allows it."""

from spillway.spark.sinks.factory import FORMATS, open_sink
from spillway.spark.sinks.schema import parquet_schema
from spillway.spark.sinks.sink import ResultFile, Sink, StagedEpoch

__all__ = ["FORMATS", "ResultFile", "Sink", "StagedEpoch", "open_sink", "parquet_schema"]
