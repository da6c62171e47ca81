"""Sinks: where the results of committed epochs go.

Contract: committing an epoch again changes nothing, so each result is there exactly once where the target
allows it. Start with `sink`; to add one: a file, and its line in `factory`.
"""

from spillway.spark.sinks.factory import open_sink
from spillway.spark.sinks.schema import parquet_schema
from spillway.spark.sinks.sink import Sink

__all__ = ["Sink", "open_sink", "parquet_schema"]
