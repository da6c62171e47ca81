"""Directories as a listing reads them: this machine's own, or any that pyarrow opens.

A name that vanishes while it is looked at is left out. A local directory that has not changed is not read
again: its modification time says so, as soon as it is older than a clock's error, and not for longer than
`TRUSTED_SECONDS`, because some file systems do not keep it.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pyarrow import fs as arrow_fs

from spillway.manager.clock import Clock, SystemClock

SETTLED_SECONDS = 2.0
"""A directory that changed later than this before it was read may change again under the same time."""
TRUSTED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Found:
    """A name in a directory."""

    name: str
    is_directory: bool
    size_bytes: int = 0
    modified_ms: int = 0


class FileTree(Protocol):
    """Names below directories. Paths are those that the tree itself gives and takes."""

    def children(self, directory: str) -> list[Found]:
        """What is in a directory; nothing if it does not exist."""
        ...

    def look(self, paths: Iterable[str]) -> list[Found | None]:
        """Each of these, as it is now; None for what does not exist."""
        ...


class LocalTree:
    """The file system of this machine."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = SystemClock() if clock is None else clock
        self._read: dict[str, tuple[float, float, list[Found]]] = {}
        """Per directory: when it was changed, when it was read, and what was in it."""

    def children(self, directory: str) -> list[Found]:
        now = self._clock.wall()
        try:
            changed = os.stat(directory).st_mtime  # noqa: PTH116 - text is several times as fast
        except (FileNotFoundError, NotADirectoryError):
            self._read.pop(directory, None)
            return []
        before = self._read.get(directory)
        if before is not None and before[0] == changed and _is_trusted(changed, before[1], now):
            return before[2]
        found = _scanned(directory)
        self._read[directory] = changed, now, found
        return found

    def look(self, paths: Iterable[str]) -> list[Found | None]:
        return [_looked(path) for path in paths]


class ArrowTree:
    """A file system of pyarrow; `prefix` is what addresses have before the paths that pyarrow knows."""

    def __init__(self, files: Any, prefix: str) -> None:
        self._files = files
        self._prefix = prefix

    def children(self, directory: str) -> list[Found]:
        selector = arrow_fs.FileSelector(self._path(directory), allow_not_found=True)
        return [_of_arrow(info) for info in self._files.get_file_info(selector)]

    def look(self, paths: Iterable[str]) -> list[Found | None]:
        asked = [self._path(path) for path in paths]
        infos = self._files.get_file_info(asked) if asked else []
        return [None if info.type == arrow_fs.FileType.NotFound else _of_arrow(info) for info in infos]

    def _path(self, address: str) -> str:
        return address.removeprefix(self._prefix)


def _is_trusted(changed: float, read: float, now: float) -> bool:
    return changed + SETTLED_SECONDS < read <= now < read + TRUSTED_SECONDS


def _scanned(directory: str) -> list[Found]:
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    is_directory = entry.is_dir()
                    status = None if is_directory else entry.stat()
                except FileNotFoundError:
                    continue  # it has just vanished, or is a link to nothing
                found.append(Found(entry.name, True) if status is None else _of_status(entry.name, status))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return found


def _looked(path: str) -> Found | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - text is several times as fast
    except (FileNotFoundError, NotADirectoryError):
        return None
    name = path.rpartition("/")[2]
    return Found(name, True) if stat.S_ISDIR(status.st_mode) else _of_status(name, status)


def _of_status(name: str, status: os.stat_result) -> Found:
    return Found(name, False, status.st_size, status.st_mtime_ns // 1_000_000)


def _of_arrow(info: Any) -> Found:
    if info.type == arrow_fs.FileType.Directory:
        return Found(info.base_name, True)
    return Found(info.base_name, False, info.size or 0, (info.mtime_ns or 0) // 1_000_000)
