"""The files of a Delta table as an input: those of the version at which the query began, then those that
later versions add.

The version of the beginning is on record in the checkpoint, with the id of the table. Otherwise a restart
would take files that only move rows (OPTIMIZE) for new ones. A table that was created again is refused.
Instead of a modification time a file has the version that added it.

Known limit: the log of the versions since the beginning must still be there.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from spillway.errors import CheckpointError
from spillway.manager.files.entry import FileEntry
from spillway.manager.files.tree import Found
from spillway.scan.files import DeltaFile, delta_additions, delta_id, delta_snapshot, delta_version
from spillway.state.storage import Storage

FORMAT = 1
DIRECTORY = "delta"


class DeltaFiles:
    """Lists the table, and looks at its files."""

    def __init__(self, name: str, root: str, storage: Storage) -> None:
        """`name` is the source's; the record of the beginning goes to the checkpoint, `storage`."""
        self._name = name
        self._root = root
        self._storage = storage
        self._version: int | None = None
        self._table = ""
        self._entries: list[FileEntry] = []
        self._versions: dict[str, int] = {}

    def files(self) -> list[FileEntry]:
        """All files so far; the same list again if the table has not changed."""
        version = delta_version(self._root)
        if version == self._version:
            return self._entries
        if self._version is not None and (version < self._version or delta_id(self._root) != self._table):
            raise self._created_again()
        if self._version is None:
            first = self._beginning(version)
            found = [*delta_snapshot(self._root, first), *delta_additions(self._root, first + 1, version)]
        else:
            found = list(delta_additions(self._root, self._version + 1, version))
        self._version = version
        self._entries = [*self._entries, *map(_entry, found)]
        self._versions |= {file.path: file.version for file in found}
        return self._entries

    def children(self, directory: str) -> list[Found]:  # noqa: ARG002 - of the protocol
        """Directories of a table mean nothing; its log does."""
        return []

    def look(self, paths: Iterable[str]) -> list[Found | None]:
        return [self._looked(path) for path in paths]

    def _looked(self, path: str) -> Found | None:
        try:
            size = Path(path).stat().st_size
        except FileNotFoundError:
            return None
        return Found(Path(path).name, False, size, self._versions.get(path, 0))

    def _beginning(self, version: int) -> int:
        """The version at which the query began: this one, if none is on record."""
        record = f"{DIRECTORY}/{self._name}.json"
        table = self._table = delta_id(self._root)
        begun = json.dumps({"format": FORMAT, "table": table, "version": version})
        if self._storage.create_exclusive(record, begun.encode(), sync=True):
            return version
        try:
            known = json.loads(self._storage.read(record).to_pybytes())
            found, first = known["table"], int(known["version"])
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(
                f"{self._storage.uri(record)} is damaged; restore the checkpoint from a backup"
            ) from None
        if found != table:
            raise self._created_again()
        return first

    def _created_again(self) -> CheckpointError:
        return CheckpointError(
            f"[sources.{self._name}] Delta table {self._root} was created again since checkpoint "
            f"{self._storage.root} began; use a new checkpoint directory and an empty sink"
        )


def _entry(file: DeltaFile) -> FileEntry:
    return FileEntry(file.path, file.bytes, file.version, file.partitions)
