"""Bytes that wait inside a task: in memory up to a limit, then in a file that nobody else sees."""

import os
import tempfile
from collections import deque
from collections.abc import Iterator
from typing import IO


class Spool:
    """First in, first out. The file has no name, so it goes with the task, however that ends."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: deque[bytes | tuple[int, int]] = deque()
        """What waits, in order: itself, or where it lies in the file."""
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._end = self._filed = 0

    def __len__(self) -> int:
        return len(self._held)

    def append(self, data: bytes) -> None:
        if self._held_bytes + len(data) <= self._limit:
            self._held.append(data)
            self._held_bytes += len(data)
            return
        if self._file is None:
            # Spark tells its tasks where its own temporary files are.
            directory = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
            self._file = tempfile.TemporaryFile(dir=directory or None)  # noqa: SIM115 - closed by `pop`
        self._file.seek(self._end)
        self._file.write(data)
        self._held.append((self._end, len(data)))
        self._end += len(data)
        self._filed += 1

    def pop(self) -> bytes | None:
        """The first that waits; None if nothing does."""
        if not self._held:
            return None
        first = self._held.popleft()
        if isinstance(first, bytes):
            self._held_bytes -= len(first)
            return first
        assert self._file is not None
        self._file.seek(first[0])
        data = self._file.read(first[1])
        self._filed -= 1
        if not self._filed:
            self._file.close()
            self._file, self._end = None, 0
        return data

    def drain(self) -> Iterator[bytes]:
        while (data := self.pop()) is not None:
            yield data

    def __del__(self) -> None:
        """A task that fails leaves what still waits."""
        if self._file is not None:
            self._file.close()
