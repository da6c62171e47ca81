"""Access to one directory tree of durable files: a local path or any URI that `pyarrow.fs` opens.

Names are relative POSIX paths below `root`. A `Storage` holds only that string: it is pickled with closures,
and opens the filesystem once per copy, when first used.

Invariant: `write` and `create_exclusive` never show a partial file under its final name, whatever is killed
when. `open_output` does, so it is for attempt-specific names that a later commit refers to.

`create_exclusive` has one winner: locally by a hard link, elsewhere by a conditional put (`object_store`).
Some stores ignore the condition, so the driver tries it first (`manager/race_probe.py`).

Known limits: `move` may be a copy. Files survive the death of any process; surviving a power cut needs
`sync=True`, which only the local filesystem honours.
"""

import os
import posixpath
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import ObjectStore
from pyarrow import fs as arrow_fs

from spillway.errors import RESTORE, CheckpointError, StateError, file_reason
from spillway.state.storage.checksum import Data, buffers
from spillway.state.storage.object_store import open_store, put_new, reason

TEMPORARY_PREFIX = ".tmp-"

Names = list[str]
"""Names relative to a root; an alias, because `Storage.list` hides the built-in in its own class."""


class Storage:
    """The files below one root."""

    __slots__ = ("_base", "_filesystem", "_store", "is_local", "root")

    def __init__(self, root: str) -> None:
        if not root:
            raise StateError("a storage root is empty: give a local path or a URI")
        local = _local_root(root)
        self.root: str = root.rstrip("/") or "/" if local is None else local
        """An absolute local path, or the URI as given."""
        self.is_local: bool = local is not None
        """Whether files are on this machine's own filesystem."""
        self._base: str | None = local
        self._filesystem: Any = None
        self._store: ObjectStore | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.root,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root!r})"

    def local_path(self, path: str = "") -> str | None:
        """The absolute local path of `path`, or None when the root is not local."""
        return self._locate(path) if self.is_local else None

    def uri(self, path: str = "") -> str:
        """`path` as readers elsewhere (Spark, deltalake) name it: a local path, or a URI."""
        name = _checked(path)
        address, mark, query = self.root.partition("?") if not self.is_local else (self.root, "", "")
        return (posixpath.join(address, name) if name else address) + mark + query

    def write(self, path: str, data: Data, *, sync: bool = False) -> None:
        """Write a whole file, replacing any older one in a single step."""
        target = self._locate(path)
        with self._reporting("write", path):
            if self.is_local:
                with _temporary(Path(target), data, sync=sync) as temporary:
                    temporary.replace(target)
            else:
                self._upload(target, data)

    def create_exclusive(self, path: str, data: Data, *, sync: bool = False) -> bool:
        """Write a whole file if there is none of that name; False, and nothing changed, if there is."""
        target = self._locate(path)
        with self._reporting("create", path):
            if self.is_local:
                with _temporary(Path(target), data, sync=sync) as temporary:
                    try:
                        Path(target).hardlink_to(temporary)
                    except FileExistsError:
                        return False
                return True
            if self._store is None:
                self._store = open_store(self.root)
            return put_new(self._store, _checked(path), b"".join(buffers(data)))

    def read(self, path: str) -> pa.Buffer:
        """The whole file, as a buffer of its own (not a mapping)."""
        target = self._locate(path)
        with self._reporting("read", path), self._open().open_input_file(target) as file:
            return file.read_buffer()

    def read_mapped(self, path: str) -> pa.Buffer:
        """The whole file; a local one as mapped memory, which the operating system can take back any time."""
        target = self.local_path(path)
        if target is None:
            return self.read(path)
        with self._reporting("read", path):
            return mapped_file(target)

    def open_input(self, path: str, *, memory_map: bool = True) -> pa.NativeFile:
        """The file for reading; a local one is mapped, so buffers read from it are not copies."""
        target = self._locate(path)
        with self._reporting("read", path):
            if self.is_local and memory_map:
                return pa.BufferReader(mapped_file(target))
            return self._open().open_input_file(target)

    def open_output(self, path: str) -> pa.NativeFile:
        """A new file for writing under an attempt-specific name; it is visible while it grows."""
        target = self._locate(path)
        with self._reporting("write", path):
            if not self.is_local:
                self._make_parent(target)
                return self._open().open_output_stream(target)
            try:
                return pa.OSFile(target, "wb")
            except FileNotFoundError:
                self._make_parent(target)
                return pa.OSFile(target, "wb")

    def writing(self, path: str) -> AbstractContextManager[None]:
        """Around the use of an open file: whatever goes wrong with it names the file."""
        return self._reporting("write", path)

    @contextmanager
    def output(self, path: str) -> Iterator[pa.NativeFile]:
        """The same, closed at the end; whatever goes wrong with it meanwhile names the file."""
        with self._reporting("write", path), self.open_output(path) as file:
            yield file

    def move(self, source: str, target: str) -> None:
        """Rename a file, replacing the target; one step on the local filesystem."""
        old, new = self._locate(source), self._locate(target)
        with self._reporting("move", source):
            if self.is_local:
                _rename(Path(old), Path(new))
            else:
                self._open().move(old, new)

    def list(self, prefix: str = "") -> Names:
        """The names of all files, at any depth, that begin with `prefix`, sorted."""
        start = "" if not prefix else _checked(prefix.rstrip("/")) + "/" * prefix.endswith("/")
        return sorted(name for name in self._walk(start) if not _is_temporary(name))

    def entries(self, directory: str = "") -> Names:
        """The files and directories directly in `directory`, sorted; none if it does not exist."""
        selector = arrow_fs.FileSelector(self._locate(directory), allow_not_found=True)
        with self._reporting("list", directory):
            found = [info.base_name for info in self._open().get_file_info(selector)]
        return sorted(name for name in found if not _is_temporary(name))

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of that name."""
        with self._reporting("look up", path):
            return bool(self._info(self._locate(path)).type != arrow_fs.FileType.NotFound)

    def size(self, path: str) -> int:
        """The file's size in bytes."""
        with self._reporting("look up", path):
            info = self._info(self._locate(path))
            if info.type != arrow_fs.FileType.File:
                raise FileNotFoundError
            return int(info.size)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; one that is already gone is not an error."""
        for path in paths:
            target = self._locate(path)
            with self._reporting("delete", path), suppress(FileNotFoundError):
                if self.is_local:
                    Path(target).unlink()
                else:
                    self._open().delete_file(target)

    def delete_temporaries(self, prefix: str = "") -> int:
        """Delete what killed writers left behind; only while nobody else writes below `prefix`."""
        leftovers = [name for name in self._walk(prefix) if _is_temporary(name)]
        self.delete(leftovers)
        return len(leftovers)

    def make_directories(self, path: str = "") -> None:
        """Create a directory and its parents; one that exists is not an error."""
        with self._reporting("create directory", path):
            self._open().create_dir(self._locate(path), recursive=True)

    def check_writable(self) -> None:
        """Create the root and prove that files can be written in it, or say in one line why not."""
        probe = f"{TEMPORARY_PREFIX}probe-{uuid.uuid4().hex}"
        try:
            self.make_directories()
            self.write(probe, b"spillway")
            self.delete([probe])
        except StateError as error:
            cause = file_reason(error.__cause__ or error, "give a directory this user can write to")
            raise CheckpointError(f"cannot write to {self.root}: {cause}") from error

    def _open(self) -> Any:
        if self._filesystem is None:
            if self.is_local:
                self._filesystem = arrow_fs.LocalFileSystem()
            else:
                try:
                    self._filesystem, self._base = arrow_fs.FileSystem.from_uri(self.root)
                except (OSError, ValueError, ImportError) as error:
                    raise StateError(f"cannot open {self.root}: {file_reason(error)}") from error
        return self._filesystem

    def _locate(self, path: str) -> str:
        if self._base is None:
            self._open()
        name = _checked(path)
        return posixpath.join(str(self._base), name) if name else str(self._base)

    def _info(self, target: str) -> Any:
        return self._open().get_file_info(target)

    def _make_parent(self, target: str) -> None:
        self._open().create_dir(posixpath.dirname(target), recursive=True)

    def _upload(self, target: str, data: Data) -> None:
        self._make_parent(target)
        with self._open().open_output_stream(target) as file:
            for buffer in buffers(data):
                file.write(buffer)

    def _walk(self, prefix: str) -> Iterator[str]:
        """The names of all files that begin with `prefix`, going only into directories that can hold one."""
        pending = [posixpath.dirname(prefix)]
        while pending:
            directory = pending.pop()
            selector = arrow_fs.FileSelector(self._locate(directory), allow_not_found=True)
            with self._reporting("list", directory):
                found = self._open().get_file_info(selector)
            for info in found:
                name = posixpath.join(directory, info.base_name)
                if info.type == arrow_fs.FileType.Directory:
                    if name.startswith(prefix) or prefix.startswith(name + "/"):
                        pending.append(name)
                elif name.startswith(prefix):
                    yield name

    @contextmanager
    def _reporting(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise StateError(f"cannot {action} {self.uri(path)}: it does not exist; {RESTORE}") from error
        except (OSError, pa.ArrowException) as error:
            raise StateError(f"cannot {action} {self.uri(path)}: {file_reason(error)}") from error
        except BaseError as error:
            raise StateError(f"cannot {action} {self.uri(path)}: {reason(error)}") from error


def mapped_file(path: str) -> pa.Buffer:
    """A local file as mapped memory. To read Arrow's formats from the mapped file itself, not from this
    buffer, takes three times as long: Arrow then goes through a thread of its own."""
    return pa.memory_map(path).read_buffer()


def _local_root(root: str) -> str | None:
    """The absolute path that `root` names on this machine, or None for a URI of another filesystem."""
    if "://" not in root:
        return str(Path(root).absolute())
    parts = urlsplit(root)
    return str(Path(unquote(parts.path)).absolute()) if parts.scheme == "file" else None


def _checked(path: str) -> str:
    if not path:
        return ""
    if path.startswith("/") or "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise StateError(
            f"{path!r} is not a name below a storage root: no '/' first, no empty, '.' or '..' part"
        )
    return path


def _is_temporary(name: str) -> bool:
    return posixpath.basename(name).startswith(TEMPORARY_PREFIX)


@contextmanager
def _temporary(target: Path, data: Data, *, sync: bool) -> Iterator[Path]:
    """A complete file beside `target`, to be linked or renamed to it, and gone afterwards."""
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{target.name}-{uuid.uuid4().hex}")
    if not target.parent.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("xb") as file:
            file.writelines(buffers(data))
            if sync:
                file.flush()
                os.fsync(file.fileno())
        yield temporary
        if sync:
            _sync_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename(old: Path, new: Path) -> None:
    """Rename; create the target's directory if that is what is missing."""
    try:
        old.replace(new)
    except FileNotFoundError:
        if not old.exists():
            raise
        new.parent.mkdir(parents=True, exist_ok=True)
        old.replace(new)
