"""A Spark temporary view that shows all committed epochs, for notebooks and tests.

The rows are Parquet files in the checkpoint directory, so the view returns after a restart; "memory" is the
name that Spark's users know. Known limit: each commit makes the view again, which lists all its files.
"""

from collections.abc import Collection

import pyarrow as pa

from spillway.manager import StagedEpoch
from spillway.spark.sinks.frame_reader import FrameReader
from spillway.spark.sinks.parquet import ParquetSink
from spillway.spark.sinks.schema import parquet_schema


class MemorySink:
    """Results as a temporary view."""

    __slots__ = ("_files", "_name", "_reader")

    def __init__(self, files: ParquetSink, reader: FrameReader, *, name: str) -> None:
        self._files = files
        self._reader = reader
        self._name = name

    @property
    def staging(self) -> str:
        return self._files.staging

    def belongs_to(self, query_id: str) -> bool:
        return self._files.belongs_to(query_id)

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        self._files.prepare(query_id, schema)
        self._reader.prepare(parquet_schema(schema))
        self._show()

    def last_committed(self, query_id: str) -> int:
        return self._files.last_committed(query_id)

    def commit(self, epoch: StagedEpoch) -> None:
        self._files.commit(epoch)
        if epoch.files:
            self._show()

    def sweep(self, keep: Collection[str]) -> int:
        return self._files.sweep(keep)

    def close(self) -> None:
        self._files.close()

    def _show(self) -> None:
        self._reader.frame([""]).createOrReplaceTempView(self._name)
