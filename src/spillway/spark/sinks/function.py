"""A user's function, called with a DataFrame over an epoch's staged results and the epoch's sequence number.

At least once: after a crash between the call and its record the function gets the same sequence with the same
rows again, and can recognise it by the number. It is not called for an epoch without results. The files
behind the DataFrame are deleted after the call, so the function must use it before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from spillway.errors import SinkError, SpillwayError
from spillway.manager import StagedEpoch
from spillway.spark.sinks.epoch_log import EpochLog
from spillway.spark.sinks.frame_reader import FrameReader
from spillway.spark.sinks.parquet import check_directory
from spillway.spark.sinks.schema import parquet_schema
from spillway.spark.sinks.staging import Staging
from spillway.state.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    EpochFunction = Callable[[DataFrame, int], object]


class FunctionSink:
    """Results as calls of a function."""

    __slots__ = ("_function", "_log", "_reader", "_staging", "_storage")

    def __init__(self, storage: Storage, reader: FrameReader, function: EpochFunction) -> None:
        self._storage = storage
        self._staging = Staging(storage)
        self._log = EpochLog(storage)
        self._reader = reader
        self._function = function

    @property
    def staging(self) -> str:
        return self._staging.uri

    def belongs_to(self, query_id: str) -> bool:
        return self._log.belongs_to(query_id)

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        columns = parquet_schema(schema)
        check_directory(self._storage)
        self._log.claim(query_id, columns)
        self._staging.prepare()
        self._reader.prepare(columns)

    def last_committed(self, query_id: str) -> int:
        return self._log.progress(query_id).sequence

    def commit(self, epoch: StagedEpoch) -> None:
        if epoch.sequence > self.last_committed(epoch.query_id):
            if epoch.files:
                self._call(epoch, self._staging.names(epoch))
            self._log.record(epoch)
        self._staging.discard(epoch)

    def sweep(self, keep: Collection[str]) -> int:
        return self._staging.sweep(keep)

    def close(self) -> None:
        pass

    def _call(self, epoch: StagedEpoch, names: list[str]) -> None:
        frame = self._reader.frame(names)
        try:
            self._function(frame, epoch.sequence)
        except SpillwayError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
            raise SinkError(
                f"the sink function failed on epoch {epoch.sequence}: {type(error).__name__}: {reason}; "
                "after a restart it gets the epoch again"
            ) from error
