"""Where the memory tier lies: a directory of its own for each query on each host, in tmpfs if possible.

A directory carries the process ids of the driver and the executors that use it on this host, so that what
killed ones left is removed by the next query that starts here.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import StateError, file_reason

TMPFS = Path("/dev/shm")  # noqa: S108 - directories below it are private to the user
ROOM_BYTES = 256 << 20
"""Free space that a tmpfs must have to be used when no budget is given."""
_OWNER = "owner-"
"""Files of this name and a process id: who uses the directory."""


@dataclass(frozen=True, slots=True)
class TierDirectory:
    path: str
    in_memory: bool
    """Whether it is a tmpfs; otherwise "resident" means page cache, and a budget is not hard."""

    def claim(self, process: int | None = None) -> None:
        """Create it for this process, without images, and remove those whose owners are all dead.

        Before the first epoch only: then what is there is of an earlier life of the query, which was killed.
        """
        directory = Path(self.path)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._clear(directory, process)
        except OSError as error:
            reason = file_reason(error, "give another directory in [run] tier")
            raise StateError(f"cannot create the memory tier in {directory}: {reason}") from error

    def _clear(self, directory: Path, process: int | None) -> None:
        for entry in directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif not _is_alive(entry):
                entry.unlink(missing_ok=True)
        self.join(process)
        for sibling in directory.parent.iterdir():
            if sibling != directory and not _is_owned(sibling):
                shutil.rmtree(sibling, ignore_errors=True)

    def join(self, process: int | None = None) -> None:
        """Note that this process uses the directory too."""
        Path(self.path).mkdir(parents=True, exist_ok=True)
        (Path(self.path) / f"{_OWNER}{process or os.getpid()}").touch()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def choose_directory(configured: str | None, query_id: str, needed_bytes: int | None) -> TierDirectory:
    name = f"spillway-{os.getuid()}"
    if configured is not None:
        return TierDirectory(str(Path(configured) / name / query_id), _is_tmpfs(Path(configured)))
    if TMPFS.is_dir() and os.access(TMPFS, os.W_OK) and _is_tmpfs(TMPFS):
        free = shutil.disk_usage(TMPFS).free
        if free >= (ROOM_BYTES if needed_bytes is None else needed_bytes):
            return TierDirectory(str(TMPFS / name / query_id), True)
    return TierDirectory(str(Path(tempfile.gettempdir()) / name / query_id), False)


def _is_tmpfs(path: Path) -> bool:
    """Whether the file system that holds `path` is a tmpfs, by the longest matching mount point."""
    try:
        mounts = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return False
    best, kind = "", ""
    resolved = str(path.resolve())
    for line in mounts:
        _, point, type_, *_ = line.split()
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, type_
    return kind in ("tmpfs", "ramfs")


def _is_owned(directory: Path) -> bool:
    return any(_is_alive(entry) for entry in directory.glob(f"{_OWNER}*"))


def _is_alive(owner: Path) -> bool:
    process = owner.name.removeprefix(_OWNER)
    return process.isdecimal() and Path(f"/proc/{process}").exists()
