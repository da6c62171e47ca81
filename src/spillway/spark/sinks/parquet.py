"""A directory of Parquet files, `part-<sequence>-<n>.parquet`, that any reader can open.

Commit moves an epoch's files from `_spillway/staging` to their final names, then records the sequence. A
crash in between leaves some files moved; the repeated commit moves the rest. Invariant: once `commit` has
returned, the directory holds each row of the epoch once. Known limit: a reader may see part of an epoch while
it commits, because a directory has no transactions; use `delta` if that matters.
"""

from collections.abc import Collection

import pyarrow as pa

from spillway.errors import CheckpointError, SinkError
from spillway.manager import StagedEpoch
from spillway.spark.sinks.epoch_log import EpochLog
from spillway.spark.sinks.schema import parquet_schema
from spillway.spark.sinks.staging import PRIVATE_DIRECTORY, Staging
from spillway.state.storage import Storage


class ParquetSink:
    """Results as plain Parquet files."""

    __slots__ = ("_log", "_staging", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._staging = Staging(storage)
        self._log = EpochLog(storage)

    @property
    def staging(self) -> str:
        return self._staging.uri

    def belongs_to(self, query_id: str) -> bool:
        return self._log.belongs_to(query_id)

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        columns = parquet_schema(schema)
        check_directory(self._storage)
        if not self._log.is_claimed and set(self._storage.entries()) - {PRIVATE_DIRECTORY}:
            raise SinkError(
                f"sink directory {self._storage.root} has files that Spillway did not write; "
                "use a new or empty directory"
            )
        self._log.claim(query_id, columns)
        self._staging.prepare()

    def last_committed(self, query_id: str) -> int:
        return self._log.progress(query_id).sequence

    def commit(self, epoch: StagedEpoch) -> None:
        if epoch.sequence <= self.last_committed(epoch.query_id):
            return
        self._staging.promote(epoch)
        self._log.record(epoch)

    def sweep(self, keep: Collection[str]) -> int:
        return self._staging.sweep(keep)

    def close(self) -> None:
        pass


def check_directory(storage: Storage) -> None:
    """Create the sink's directory and check that it is writable; SinkError if not."""
    try:
        storage.check_writable()
    except CheckpointError as error:
        raise SinkError(f"sink: {error}") from error
