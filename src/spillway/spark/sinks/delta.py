"""A Delta Lake table, written through `deltalake` without a JVM connector.

Commit moves an epoch's files from `_spillway/staging` to their final names in the table directory, where no
reader sees them, and appends them to the log in one transaction that carries (query id, sequence) as
application transaction. Invariant: the log holds each sequence once. `deltalake` does not refuse a repeated
application transaction by itself, only a concurrent one, so the table is refreshed and checked first; after
any failure it is checked again, because the transaction may have succeeded.

An epoch without result files commits the transaction alone: the sequence in the table stays exact, at the
cost of a log entry of a few hundred bytes.

Cost: 7 to 10 ms per commit, flat over 400 commits, because the log gets a checkpoint every ten (without one,
200 commits made it 85 ms). Known limit: it grows by some 2 microseconds per file in the table, which Delta's
OPTIMIZE brings down; on object stores the move is a copy.
"""

import re
import time
from collections.abc import Collection, Mapping

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, Transaction

from spillway.errors import SinkError, disk_reason
from spillway.manager import StagedEpoch
from spillway.spark.sinks.parquet import check_directory
from spillway.spark.sinks.schema import check_delta_names, parquet_schema
from spillway.spark.sinks.staging import PRIVATE_DIRECTORY, Staging
from spillway.state.storage import Storage

OWNER_PROPERTY = "spillway.queryId"

DEFAULT_PROPERTIES: Mapping[str, str] = {
    # Measured: 10 keeps the time to refresh the table flat; larger values let it grow in between.
    "delta.checkpointInterval": "10",
    # Delta keeps 30 days by default; with an entry per epoch, listing the log would be slow long before.
    "delta.logRetentionDuration": "interval 1 days",
}

_RESTORE = "correct that, or restore the table from a backup"
LOG_CLEANUP_EPOCHS = 100
"""Commits between two searches for expired log entries, if the table allows them: each lists the whole
log."""


class DeltaSink:
    """Results as a Delta table."""

    __slots__ = ("_properties", "_schema", "_staging", "_storage", "_storage_options", "_table")

    def __init__(
        self,
        storage: Storage,
        *,
        properties: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._storage = storage
        self._staging = Staging(storage)
        self._properties = {**DEFAULT_PROPERTIES, **(properties or {})}
        self._storage_options = dict(storage_options or {})
        self._table: DeltaTable | None = None
        self._schema: Schema | None = None

    @property
    def staging(self) -> str:
        return self._staging.uri

    def belongs_to(self, query_id: str) -> bool:
        if not self._storage.entries("_delta_log"):
            return False
        try:
            table = DeltaTable(self._uri, storage_options=self._storage_options)
        except (DeltaError, OSError, ValueError) as error:
            raise SinkError(f"cannot open Delta table {self._uri}: {_reason(error, _RESTORE)}") from error
        return table.metadata().configuration.get(OWNER_PROPERTY) == query_id

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        check_delta_names(schema)
        wanted = Schema.from_arrow(parquet_schema(schema))
        check_directory(self._storage)
        try:
            if not DeltaTable.is_deltatable(self._uri, self._storage_options):
                self._create(query_id, wanted)
            table = DeltaTable(self._uri, storage_options=self._storage_options)
        except (DeltaError, OSError, ValueError) as error:
            raise SinkError(f"cannot open Delta table {self._uri}: {_reason(error, _RESTORE)}") from error
        self._check_owner(table, query_id, wanted)
        self._staging.prepare()
        self._table, self._schema = table, wanted

    def last_committed(self, query_id: str) -> int:
        if self._table is None:
            return -1
        try:
            self._table.update_incremental()
            version = self._table.transaction_version(query_id)
        except (DeltaError, OSError, ValueError) as error:
            raise SinkError(f"cannot read Delta table {self._uri}: {_reason(error, _RESTORE)}") from error
        return -1 if version is None else version

    def commit(self, epoch: StagedEpoch) -> None:
        if self._table is None:
            raise SinkError(f"Delta table {self._uri} was not prepared before epoch {epoch.sequence}")
        if epoch.sequence <= self.last_committed(epoch.query_id):
            return
        names = self._staging.promote(epoch)
        try:
            self._append(self._table, epoch, names)
        except (DeltaError, OSError, ValueError) as error:
            if epoch.sequence <= self.last_committed(epoch.query_id):
                return  # The transaction succeeded; the failure came after it, or another driver was first.
            raise SinkError(
                f"cannot commit epoch {epoch.sequence} to Delta table {self._uri}: "
                f"{_reason(error, 'correct that, then run the command again')}"
            ) from error

    def sweep(self, keep: Collection[str]) -> int:
        return self._staging.sweep(keep)

    def close(self) -> None:
        self._table = None

    @property
    def _uri(self) -> str:
        return self._storage.root.partition("?")[0] if not self._storage.is_local else self._storage.root

    def _create(self, query_id: str, schema: Schema) -> None:
        if set(self._storage.entries()) - {PRIVATE_DIRECTORY, "_delta_log"}:
            raise SinkError(
                f"sink directory {self._uri} has files but no Delta table; use a new or empty directory"
            )
        DeltaTable.create(
            self._uri,
            schema,
            mode="ignore",
            configuration={**self._properties, OWNER_PROPERTY: query_id},
            storage_options=self._storage_options,
            raise_if_key_not_exists=False,
        )

    def _check_owner(self, table: DeltaTable, query_id: str, wanted: Schema) -> None:
        owner = table.metadata().configuration.get(OWNER_PROPERTY)
        if owner != query_id:
            holder = "another query" if owner else "a writer other than Spillway"
            raise SinkError(
                f"sink {self._uri} is a Delta table with the output of {holder}"
                f"{f' ({owner})' if owner else ''}; give another path, or delete it to start over"
            )
        if table.schema() != wanted:
            found = ", ".join(str(field.name) for field in table.schema().fields)
            raise SinkError(
                f"sink {self._uri} has columns {found}, which differ from the view in name or type; "
                "give another path and checkpoint"
            )

    def _append(self, table: DeltaTable, epoch: StagedEpoch, names: list[str]) -> None:
        written_ms = time.time_ns() // 1_000_000
        actions = [
            AddAction(name, file.bytes, {}, written_ms, True, f'{{"numRecords":{file.rows}}}')
            for name, file in zip(names, epoch.files, strict=True)
        ]
        table.create_write_transaction(
            list(actions),
            "append",
            self._schema if self._schema is not None else table.schema(),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(epoch.query_id, epoch.sequence)],
            ),
            post_commithook_properties=PostCommitHookProperties(
                cleanup_expired_logs=None if epoch.sequence % LOG_CLEANUP_EPOCHS == 0 else False,
            ),
        )


def _reason(error: Exception, remedy: str) -> str:
    """The error in one line, without the colours and backtrace of deltalake, and what to do about it."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line for line in plain.splitlines() if not re.match(r"\s*(\d+: |at )", line)]
    text = " ".join(" ".join(lines).split()) or type(error).__name__
    return disk_reason(text) or f"{text}; {remedy}"
