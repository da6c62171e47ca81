"""The manifest on storage: one exclusively created file per epoch, and a snapshot now and then.

    manifest/000000000042.json             the record of epoch 42
    manifest/000000000040.snapshot.json    the whole manifest after epoch 40
    owners/000003.json                     the fencing tokens; the highest is the driver in charge

To commit an epoch is to create its record. A driver that is no longer in charge can create nothing: its
token is checked before, and the creation is exclusive. Writing a snapshot deletes files that were already
unreferenced at the snapshot before it.
"""

import os
import socket
from collections.abc import Iterator
from typing import TypeVar

from spillway.errors import CheckpointError, StateError
from spillway.model import from_json, to_json
from spillway.state.log.manifest import NO_BATCH, Manifest
from spillway.state.log.record import EpochRecord
from spillway.state.storage import Storage, encode_document, read_document

T = TypeVar("T", Manifest, EpochRecord)
SNAPSHOT_EPOCHS = 20
_SNAPSHOT = ".snapshot.json"


class ManifestLog:
    """The log of one checkpoint, held by one driver."""

    def __init__(self, storage: Storage, *, snapshot_epochs: int = SNAPSHOT_EPOCHS) -> None:
        self._storage = storage
        self._snapshot_epochs = snapshot_epochs
        self._garbage: list[set[str]] = [set(), set()]
        """Files that became unreferenced before the last snapshot, and since."""
        self.token = _take_over(storage)

    def load(self, placement: tuple[int, ...]) -> Manifest:
        """The committed state; an empty one with this placement if nothing was ever committed."""
        snapshots, records = self._names()
        new = Manifest(-1, NO_BATCH, placement)
        manifest = self._read(Manifest, snapshots[-1][1]) if snapshots else new
        for sequence, name in records:
            if sequence > manifest.sequence:
                manifest = manifest.apply(self._read(EpochRecord, name))
        return manifest

    def records_after(self, sequence: int) -> Iterator[EpochRecord]:
        """The records that are still kept of the epochs after `sequence`, in order."""
        for number, name in self._names()[1]:
            if number > sequence:
                yield self._read(EpochRecord, name)

    def commit(self, manifest: Manifest, record: EpochRecord) -> Manifest:
        """Make the epoch permanent; returns the new committed state."""
        committed = manifest.apply(record)
        self._check_in_charge()
        name = f"manifest/{record.sequence:012d}.json"
        if not self._storage.create_exclusive(name, encode_document(to_json(record))):
            raise CheckpointError(
                f"epoch {record.sequence} is already in {self._storage.uri('manifest')}: another driver "
                "uses this checkpoint; stop one of the two"
            )
        self._garbage[-1] |= manifest.files() - committed.files()
        if record.sequence % self._snapshot_epochs == self._snapshot_epochs - 1:
            self._snapshot(committed)
        return committed

    def _snapshot(self, manifest: Manifest) -> None:
        snapshots, records = self._names()
        name = f"manifest/{manifest.sequence:012d}{_SNAPSHOT}"
        self._storage.write(name, encode_document(to_json(manifest)))
        self._storage.delete(self._garbage[0])
        self._garbage = [self._garbage[1], set()]
        if snapshots:
            last = snapshots[-1][0]
            self._storage.delete(old for sequence, old in snapshots[:-1] if sequence < last)
            self._storage.delete(old for sequence, old in records if sequence < last)

    def sweep(self, manifest: Manifest) -> None:
        """After a restart: delete what killed attempts and killed drivers left, and nobody refers to.

        Apart from `load`, because it must not happen before the manifest has proved to be complete.
        """
        kept = manifest.files()
        for record in self.records_after(-1):
            kept |= {run.name for run in record.added}
            kept |= {entry.name for queue in record.pending.values() for entry in queue}
        stored = set(self._storage.list("runs/")) | set(self._storage.list("pending/"))
        self._storage.delete(stored - kept)
        self._garbage[-1] |= (stored & kept) - manifest.files()

    def _read(self, kind: type[T], name: str) -> T:
        where = f"{self._storage.uri(name)} cannot be read"
        return from_json(kind, read_document(self._storage, name), where)

    def _names(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        snapshots: list[tuple[int, str]] = []
        records: list[tuple[int, str]] = []
        for name in self._storage.list("manifest/"):
            number = _number(self._storage, name)
            (snapshots if name.endswith(_SNAPSHOT) else records).append((number, name))
        return sorted(snapshots), sorted(records)

    def _check_in_charge(self) -> None:
        newest = _newest_token(self._storage)
        if newest != self.token:
            owner = read_document(self._storage, _owner(newest))
            raise CheckpointError(
                f"another driver (process {owner['process']} on {owner['host']}) took over the checkpoint "
                f"{self._storage.root}; this one has stopped without committing"
            )


def _owner(token: int) -> str:
    return f"owners/{token:06d}.json"


def _newest_token(storage: Storage) -> int:
    return max((_number(storage, f"owners/{name}") for name in storage.entries("owners")), default=0)


def _number(storage: Storage, name: str) -> int:
    """The epoch or the token in a file's name."""
    number = name.rsplit("/", 1)[-1].split(".", 1)[0]
    if not number.isdecimal():
        raise StateError(
            f"{storage.uri(name)} is not a file of Spillway; move it out of the checkpoint, then run the "
            "command again"
        )
    return int(number)


def _take_over(storage: Storage) -> int:
    body = encode_document({"host": socket.gethostname(), "process": os.getpid()})
    while True:
        token = _newest_token(storage) + 1
        if storage.create_exclusive(_owner(token), body):
            return token
