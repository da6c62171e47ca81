"""The identity of a checkpoint: whose state it is, and who may write to it now.

    query.json       query id, fingerprint of the view, schema, groups, places of the sources, format of the
                     sink, the tree that statistics chose; written once, exclusively
    lock             held by the running driver (local directories), so that a second one is refused at once

Everything that decides what the bytes of the state mean is in the identity. A restart with another view,
schema or number of groups, or with sources elsewhere, is refused before anything is read or written.
"""

import fcntl
import os
import re
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from spillway.errors import CheckpointError
from spillway.manager.race_probe import require_one_winner
from spillway.model import WrittenAs, from_json, to_json
from spillway.redaction import redacted, redacted_values
from spillway.state.storage import NewDirectories, Storage, encode_document, read_document

IDENTITY = "query.json"
LOCK = "lock"
_BY_NAME = WrittenAs(
    Mapping[str, tuple[str, str]],
    lambda sources: {name: place for name, *place in sources},
    lambda places: tuple((name, *place) for name, place in places.items()),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What must be the same for a restart."""

    fingerprint: str
    view: str
    schema: tuple[tuple[str, ...], ...]
    """Per input, the state columns with their types."""
    groups: int
    sources: Annotated[tuple[tuple[str, str, str], ...], _BY_NAME] = ()
    """Name, format and place of each source that has one: files found elsewhere would be read again."""
    sink: str = ""
    """The format of the sink."""
    tree: str | None = None
    """The tree that statistics chose, as JSON. A restart plans with it; it is part of the fingerprint."""


def stored_identity(storage: Storage) -> Identity | None:
    """Whose checkpoint is there; None if it is new."""
    if IDENTITY not in storage.entries():
        return None
    found = read_document(storage, IDENTITY)
    found.pop("query_id", None)
    return _identity(storage, found)


def _identity(storage: Storage, found: Mapping[str, object]) -> Identity:
    return from_json(Identity, found, f"{storage.uri(IDENTITY)} cannot be read")


class Checkpoint:
    """An opened checkpoint directory; `close` lets others in again."""

    def __init__(self, location: str, identity: Identity) -> None:
        self.storage = Storage(location)
        self._made = NewDirectories(self.storage)
        self.storage.check_writable()
        require_one_winner(self.storage)
        self._lock = _lock(self.storage)
        self._is_new = False
        with ExitStack() as undo:
            undo.callback(self.close)
            self.query_id = self._query_id(identity)
            undo.pop_all()

    @property
    def has_epochs(self) -> bool:
        return bool(self.storage.entries("manifest"))

    def abandon(self) -> None:
        """Remove what this driver created, if nothing was ever committed."""
        if self._is_new and not self.has_epochs:
            self.storage.delete([IDENTITY])
            if self.storage.entries() == [LOCK]:
                self.storage.delete([LOCK])
            self._made.remove_empty()

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _query_id(self, identity: Identity) -> str:
        query_id, now = uuid.uuid4().hex, to_json(replace(identity, view=redacted(identity.view)))
        if self.storage.create_exclusive(IDENTITY, encode_document({"query_id": query_id, **now})):
            self._is_new = True
            return query_id
        found = read_document(self.storage, IDENTITY)
        query_id = str(found.pop("query_id"))
        stored = to_json(_identity(self.storage, found))
        # The fingerprint decides whether the view is another one; its text is for readers.
        before = stored | {"sources": redacted_values(stored["sources"])}
        if before["fingerprint"] == now["fingerprint"] or redacted(before["view"]) == now["view"]:
            before["view"] = now["view"]
        for key, meaning in _MEANINGS.items():
            if before[key] != now[key]:
                raise CheckpointError(
                    f"checkpoint {self.storage.root} belongs to another query: {meaning} was "
                    f"{_shown(before[key], now[key])}, now it is {_shown(now[key], before[key])}; undo the "
                    "change, or use a new checkpoint directory and an empty sink"
                )
        self._check_sources(before["sources"], now["sources"])
        return query_id

    def _check_sources(self, before: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> None:
        """Files that are elsewhere would be read again. What a DataFrame reads is not known here."""
        for name in before.keys() & now.keys():
            # A job file may have got a variable for what it said before; then there was no digest.
            if before[name] not in (now[name], [_DIGEST.sub("", part) for part in now[name]]):
                raise CheckpointError(
                    f"checkpoint {self.storage.root} read source {name} from {' '.join(before[name])}, now "
                    f"it is {' '.join(now[name])}; put the files back where they were, or use a new "
                    "checkpoint directory and an empty sink"
                )


_DIGEST = re.compile(r" \([0-9a-f]{12}\)$")
"""Of a place that a variable gives a part of."""
_MEANINGS = {
    "view": "the view",
    "schema": "the schema",
    "groups": "groups",
    "fingerprint": "the plan",
    "sink": "the format of its sink",
}


def _shown(value: object, other: object, limit: int = 120) -> str:
    """A value in a message; a long one is cut around where it differs from the other."""
    text = str(value)
    if len(text) <= limit:
        return text
    pairs = zip(text, str(other), strict=False)
    same = next((place for place, (ours, theirs) in enumerate(pairs) if ours != theirs), 0)
    start = max(0, min(same - limit // 2, len(text) - limit))
    end = start + limit
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _lock(storage: Storage) -> int | None:
    """Hold the lock file; if its last owner removed it while it was opened here, try again."""
    path = storage.local_path(LOCK)
    if path is None:
        return None
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = Path(path).read_text() or "unknown"
            os.close(descriptor)
            raise CheckpointError(
                f"checkpoint {storage.root} is in use by process {owner}; stop it, or use another directory"
            ) from None
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor
