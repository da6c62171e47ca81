"""Which query a sink directory belongs to and up to which epoch it holds results.

`_spillway/query.json` names the owner and its columns and is created once; `_spillway/commits/<sequence>` is
created exclusively when an epoch is committed; then the older ones are deleted. Invariant: the highest
sequence in that directory never falls, even if a driver that was thought dead records an old epoch late.
"""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spillway.errors import SinkError
from spillway.manager import StagedEpoch, require_one_winner
from spillway.spark.sinks.staging import PRIVATE_DIRECTORY
from spillway.state.storage import Storage

OWNER_NAME = f"{PRIVATE_DIRECTORY}/query.json"
COMMITS_DIRECTORY = f"{PRIVATE_DIRECTORY}/commits"


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """How far a sink has come."""

    sequence: int
    """The highest committed sequence, -1 if none."""
    total_rows: int
    """The rows of all committed epochs."""


class EpochLog:
    """The record of one query's commits in one directory."""

    __slots__ = ("_storage",)

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def is_claimed(self) -> bool:
        """Whether some query owns the directory."""
        return self._storage.exists(OWNER_NAME)

    def belongs_to(self, query_id: str) -> bool:
        """Whether this query owns the directory."""
        return self.is_claimed and self._owner()[0] == query_id

    def claim(self, query_id: str, schema: pa.Schema) -> None:
        """Claim the directory for this query; SinkError if another query owns it or its columns differ."""
        columns = [[field.name, str(field.type)] for field in schema]
        text = json.dumps({"query_id": query_id, "columns": columns}).encode()
        if not self.is_claimed:
            require_one_winner(self._storage)
        if self._storage.create_exclusive(OWNER_NAME, text):
            return
        owner, found = self._owner()
        if owner != query_id:
            raise SinkError(
                f"sink {self._storage.root} holds the output of another query ({owner}); "
                "give another path, or delete it to start over"
            )
        if found != columns:
            raise SinkError(
                f"sink {self._storage.root} holds columns {_described(found)}, the view now gives "
                f"{_described(columns)}; give another path and checkpoint"
            )

    def progress(self, query_id: str) -> SinkProgress:
        """The progress of this query; nothing is committed if another query owns the directory."""
        if not self.belongs_to(query_id):
            return SinkProgress(sequence=-1, total_rows=0)
        names = self._storage.list(f"{COMMITS_DIRECTORY}/")
        if not names:
            return SinkProgress(sequence=-1, total_rows=0)
        sequence = int(names[-1].rpartition("/")[2])
        return SinkProgress(sequence=sequence, total_rows=int(self._load(names[-1])["total_rows"]))

    def record(self, epoch: StagedEpoch) -> None:
        """Record that an epoch is committed; does nothing if it, or a later one, is recorded already."""
        progress = self.progress(epoch.query_id)
        if epoch.sequence <= progress.sequence:
            return
        entry = {"rows": epoch.rows, "total_rows": progress.total_rows + epoch.rows}
        name = f"{COMMITS_DIRECTORY}/{epoch.sequence:020d}"
        self._storage.create_exclusive(name, json.dumps(entry).encode())
        self._storage.delete([old for old in self._storage.list(f"{COMMITS_DIRECTORY}/") if old < name])

    def _owner(self) -> tuple[str, list[list[str]]]:
        content = self._load(OWNER_NAME)
        return content["query_id"], content["columns"]

    def _load(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads(self._storage.read(name).to_pybytes())
        except ValueError as error:
            raise SinkError(f"{self._storage.uri(name)} is damaged; delete the sink to start over") from error
        if not isinstance(content, dict):
            raise SinkError(f"{self._storage.uri(name)} is damaged; delete the sink to start over")
        return content


def _described(columns: list[list[str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)
