"""The file log: which files belong to which batch of which input, in the checkpoint beside the manifest.

    files/000000000012.000003.0.json    the files of batch 12, planned by the driver with token 3
    files/000000000012.000003.1.json    the files of 16 batches up to batch 12, in one

A record is created before the epoch of its batch. It counts if the manifest has that batch, committed by the
driver of that token, or if a record that counts names it as the one before. All others are plans that came to
nothing: their files are planned again. So a driver that was thought dead can neither change nor replace what
the driver in charge has written, and needs no lock: it writes under its own token.

`MERGED` records of a level become one of the next, so there are few files and each entry is written a few
times only. Known limit: the log never forgets a file; the driver has about 200 bytes in memory for each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import quote

from spillway.errors import RESTORE, CheckpointError, StateError
from spillway.manager.files.entry import FileBatch, FileEntry
from spillway.model import from_json, to_json
from spillway.state.storage import Storage, encode_document, read_document

DIRECTORY = "files"
MERGED = 16
NO_RECORD = ""
Known = dict[str, tuple[int, int]]
"""By path: size in bytes, and modification time in milliseconds."""


class LoggedFile(NamedTuple):
    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The files of batches `first` to `last`."""

    first: int
    last: int
    token: int
    previous: str
    """The record of the batches before."""
    level: int
    """How often its entries were merged."""
    inputs: tuple[str, ...]
    """The names of the inputs."""
    files: tuple[tuple[LoggedFile, ...], ...]
    """Per input."""

    @property
    def name(self) -> str:
        return record_name(self.last, self.token, self.level)


def record_name(last: int, token: int, level: int = 0) -> str:
    return f"{DIRECTORY}/{last:012d}.{token:06d}.{level}.json"


class FileLog:
    """The log of one checkpoint, written by the driver with this token."""

    def __init__(self, storage: Storage, token: int, inputs: Sequence[str]) -> None:
        self._storage = storage
        self._token = token
        self._inputs = tuple(inputs)
        self._records: list[FileRecord] = []
        """Those that count or were planned here, oldest first; merged ones without their files."""
        self._garbage: list[tuple[int, list[str]]] = []
        """Names that nobody needs once this batch is committed."""

    def load(self, batch_id: int, token: int) -> list[Known]:
        """The files that are committed, per input.

        `batch_id` is the last batch of the manifest, and `token` that of the driver which committed it. Older
        records that do not count are deleted; younger ones may belong to a driver that has taken over.
        """
        records = list(reversed(list(self._chain(batch_id, token))))
        known: list[Known] = [{} for _ in self._inputs]
        for record in records:
            if record.inputs != self._inputs:
                raise CheckpointError(
                    f"checkpoint {self._storage.root} has files of the inputs {', '.join(record.inputs)}, "
                    f"now they are {', '.join(self._inputs)}; undo the change, or use a new checkpoint "
                    "directory and an empty sink"
                )
            for files, entries in zip(known, record.files, strict=True):
                files.update((entry.path, entry[1:]) for entry in entries)
        self._records = [_stripped(record) for record in records]
        kept = {record.name for record in records}
        names = set(self._storage.list(f"{DIRECTORY}/")) - kept
        self._storage.delete(name for name in names if name < record_name(max(batch_id, 0), 0))
        return known

    def plan(self, batch: FileBatch, committed: int) -> None:
        """Make a batch durable before its epoch; `committed` is the last batch of the manifest.

        To commit the batch is to commit all before it, so records may be merged that are not committed yet.
        """
        self._merge(batch.batch_id)
        self._sweep(committed)
        files = tuple(tuple(_logged(entry) for entry in entries) for entries in batch.files)
        number, last = batch.batch_id, self._records[-1].name if self._records else NO_RECORD
        record = FileRecord(number, number, self._token, last, 0, self._inputs, files)
        self._create(record)
        self._records.append(record)

    def _chain(self, batch_id: int, token: int) -> Iterator[FileRecord]:
        """The records that count, youngest first."""
        name, wanted = record_name(batch_id, token) if batch_id >= 0 else NO_RECORD, batch_id
        while name != NO_RECORD:
            record = self._read(name, wanted)
            yield record
            name, wanted = record.previous, record.first - 1
        if wanted >= 0:
            raise self._lacks(wanted)

    def _read(self, name: str, wanted: int) -> FileRecord:
        if not self._storage.exists(name):
            raise self._lacks(wanted)
        document = read_document(self._storage, name)
        record = from_json(FileRecord, document, f"{self._storage.uri(name)} cannot be read")
        if record.last != wanted or record.name != name:
            raise StateError(f"{self._storage.uri(name)} is not the record of batch {wanted}; {RESTORE}")
        return record

    def _lacks(self, batch_id: int) -> CheckpointError:
        return CheckpointError(
            f"the file log {self._storage.uri(DIRECTORY)} lacks batch {batch_id}, which the manifest has; "
            "restore both from one backup, or start with a new checkpoint directory and an empty sink"
        )

    def _merge(self, batch_id: int) -> None:
        """Make the youngest records one, as long as there are enough of a level. `batch_id` comes next."""
        while self._records:
            level = self._records[-1].level
            youngest = takewhile(partial(_has_level, level), reversed(self._records))
            count = sum(1 for _ in youngest)
            if count < MERGED:
                return
            run = self._records[-count:]
            whole = [record if record.files else self._read(record.name, record.last) for record in run]
            files = tuple(
                tuple(file for record in whole for file in record.files[number])
                for number in range(len(self._inputs))
            )
            merged = replace(
                run[-1],
                first=run[0].first,
                token=self._token,
                previous=run[0].previous,
                level=level + 1,
                files=files,
            )
            self._create(merged)
            self._garbage.append((batch_id, [record.name for record in run]))
            self._records[-count:] = [_stripped(merged)]

    def _sweep(self, committed: int) -> None:
        """Delete what the manifest no longer reaches: it has a batch that was planned after the merge."""
        self._storage.delete(name for due, names in self._garbage if due <= committed for name in names)
        self._garbage = [(due, names) for due, names in self._garbage if due > committed]

    def _create(self, record: FileRecord) -> None:
        body = encode_document(to_json(record))
        if not self._storage.create_exclusive(record.name, body, sync=True):
            raise CheckpointError(
                f"{self._storage.uri(record.name)} is there already: another driver uses this checkpoint; "
                "stop one of the two"
            )


def _has_level(level: int, record: FileRecord) -> bool:
    return record.level == level


def _stripped(record: FileRecord) -> FileRecord:
    return replace(record, files=())


def has_file_log(storage: Storage) -> bool:
    return bool(storage.entries(DIRECTORY))


def remove_file_log(storage: Storage) -> None:
    """Forget plans of batches that were never committed."""
    storage.delete(storage.list(f"{DIRECTORY}/"))


def first_logged(storage: Storage, directory: str) -> str | None:
    """The address of an early file below a directory, if there is one; it decides the columns."""
    below = directory.removeprefix("file://").rstrip("/") + "/"
    for name in storage.list(f"{DIRECTORY}/"):
        record = from_json(FileRecord, read_document(storage, name), f"{storage.uri(name)} cannot be read")
        for files in record.files:
            for path, *_ in files:
                if path.startswith(below):
                    return path if "://" in path else quote(path)
    return None


def _logged(entry: FileEntry) -> LoggedFile:
    return LoggedFile(entry.path, entry.size_bytes, entry.modified_ms)
