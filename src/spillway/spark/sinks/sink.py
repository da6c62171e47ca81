"""What a sink is: the last step of an epoch's commit, after the manifest.

Tasks write result files as Parquet below `staging` under attempt-specific names; the manifest lists those of
the attempts that count; `commit` makes them visible. Invariant: committing the same sequence again, after a
crash at any point of an earlier try, leaves the sink as one commit would. Sequences are committed in
increasing order.

`SinkCommitter` connects a sink to the engine: the engine knows file names and numbers, the sink takes staged
epochs.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from spillway.state.orders import Files


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One Parquet file of result rows, as the task that wrote it reports it."""

    path: str
    """Relative to the sink's staging directory."""
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedEpoch:
    """The results of one epoch, written but not yet visible."""

    sequence: int
    query_id: str
    files: tuple[ResultFile, ...]
    rows: int


class Sink(Protocol):
    """The target of one query's results."""

    @property
    def staging(self) -> str | None:
        """The directory (local path or URI) for result files; None: results are only counted."""

    def belongs_to(self, query_id: str) -> bool:
        """Whether `prepare` was ever called for this query; creates nothing."""

    def prepare(self, query_id: str, schema: pa.Schema) -> None:
        """Create or check the target before anything runs; SinkError if it cannot hold the results."""

    def last_committed(self, query_id: str) -> int:
        """The highest sequence in the sink, -1 if none."""

    def commit(self, epoch: StagedEpoch) -> None:
        """Make an epoch's results visible, once."""

    def sweep(self, keep: Collection[str]) -> int:
        """Delete staged files that are not in `keep` and count them; only while no task of the query runs."""

    def close(self) -> None:
        """Release resources; committed results stay."""


@dataclass(frozen=True, slots=True)
class SinkCommitter:
    sink: Sink
    query_id: str

    @property
    def staging(self) -> str | None:
        return self.sink.staging

    def last_committed(self, query_id: str) -> int:
        return self.sink.last_committed(query_id)

    def commit_files(self, sequence: int, files: Files) -> None:
        staged = tuple(ResultFile(name, rows, size) for name, rows, size in files)
        self.sink.commit(StagedEpoch(sequence, self.query_id, staged, sum(file.rows for file in staged)))
