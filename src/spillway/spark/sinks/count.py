"""A sink that keeps no rows, only how many there were.

For results that are only counted, or too many to keep. The total is in the checkpoint, so it survives a
restart, and a repeated epoch does not count twice.
"""

from collections.abc import Collection

import pyarrow as pa

from spillway.manager import StagedEpoch
from spillway.spark.sinks.epoch_log import EpochLog
from spillway.spark.sinks.parquet import check_directory
from spillway.state.storage import Storage


class CountSink:
    """Results as their number."""

    __slots__ = ("_log", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._log = EpochLog(storage)

    @property
    def staging(self) -> None:
        return None

    def belongs_to(self, query_id: str) -> bool:
        return self._log.belongs_to(query_id)

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        check_directory(self._storage)
        self._log.claim(query_id, schema)

    def last_committed(self, query_id: str) -> int:
        return self._log.progress(query_id).sequence

    def total_rows(self, query_id: str) -> int:
        """The rows of all committed epochs."""
        return self._log.progress(query_id).total_rows

    def commit(self, epoch: StagedEpoch) -> None:
        self._log.record(epoch)

    def sweep(self, keep: Collection[str]) -> int:  # noqa: ARG002 - nothing is ever staged
        return 0

    def close(self) -> None:
        pass
