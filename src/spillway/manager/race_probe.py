"""Proves, before anything depends on it, that a store creates a file for one writer only.

Some servers that speak S3 ignore the condition of a put and tell every writer that it won. Then two drivers
could commit the same epoch. The probe lets two writers race for a few names and a third one come late.
"""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from spillway.errors import CheckpointError, StateError
from spillway.state.storage import TEMPORARY_PREFIX, Storage

RACES = 3


def require_one_winner(storage: Storage) -> None:
    """Raises `CheckpointError` if two writers can both create a file in this storage. Leaves nothing."""
    for _ in range(RACES):
        name = f"{TEMPORARY_PREFIX}race-{uuid.uuid4().hex}"
        try:
            wins = _race(storage, name)
        finally:
            storage.delete([name])
        if wins != 1:
            raise CheckpointError(
                f"{storage.root} told {wins} of 3 writers that they alone created the same file: it does not "
                "honour conditional puts (If-None-Match: *), so two drivers could commit the same epoch; "
                "use another store or a shared directory"
            )


def _race(storage: Storage, name: str) -> int:
    """How many of three writers were told that they created the file: two at once, one afterwards."""
    start = threading.Barrier(2)

    def create(writer: int) -> bool:
        own = Storage(storage.root)
        start.wait()
        return own.create_exclusive(name, b"writer %d" % writer)

    with ThreadPoolExecutor(max_workers=2) as writers:
        won = list(writers.map(create, range(2)))
    won.append(storage.create_exclusive(name, b"writer 2"))
    if sum(won) == 1 and storage.read(name).to_pybytes() != b"writer %d" % won.index(True):
        raise StateError(f"{storage.uri(name)} does not hold what its only writer wrote")
    return sum(won)
