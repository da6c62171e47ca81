"""What a sink is: the last step of an epoch's commit, after the manifest.

Tasks write result files as Parquet below `staging` under attempt-specific names; the manifest lists those of
the attempts that count; `commit` makes them visible. Invariant: committing the same sequence again, after a
crash at any point of an earlier try, leaves the sink as one commit would. Sequences are committed in
increasing order.
"""

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from spillway.manager import StagedEpoch


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
