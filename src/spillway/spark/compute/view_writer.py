"""Writes a computed view so that a reader sees all of it or nothing.

Parquet: into a directory beside the target, which gets the target's name when it is complete. Delta: files
first, then one commit that names them. An unfinished run leaves nothing. Known limits: only local paths;
while a Parquet directory is replaced (`mode = "overwrite"`), it does not exist for a moment.
"""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import DataFrame

from spillway.errors import SinkError
from spillway.job import SinkSpec
from spillway.state.storage import NewDirectories, Storage

PROBE_BYTES = 1 << 16
QUIET_SECONDS, PATIENCE_SECONDS = 2.0, 30.0
"""How long no file of a failed run may reappear before it counts as removed, and the longest wait for
that."""


class ViewWriter:
    """One result for one sink.

    `check` is called when the result is complete and not yet visible; it raises to withdraw it."""

    def __init__(self, sink: SinkSpec, check: Callable[[], None] = lambda: None) -> None:
        self._format, self._check = sink.format, check
        self._overwrite = sink.options.get("mode") == "overwrite"
        self._path = Path(sink.path) if sink.path is not None and sink.format != "count" else None
        self.rows = 0

    @classmethod
    def to(cls, sink: SinkSpec, check: Callable[[], None] = lambda: None) -> "ViewWriter":
        """A writer to a sink that can be written: a bad one is refused before anything is computed."""
        writer = cls(sink, check)
        if writer._path is not None:
            if "://" in str(sink.path):
                raise SinkError(f"sink {sink.path}: a computed view goes to a local path")
            writer._check_target(writer._path)
        return writer

    def __call__(self, frame: DataFrame) -> None:
        if self._path is None:
            self.rows = frame.count()
            self.check_wanted()
        elif self._format == "delta":
            self._write_delta(frame, self._path)
        else:
            self._write_parquet(frame, self._path)

    def check_wanted(self) -> None:
        self._check()

    def _check_target(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise SinkError(f"sink {path} is a file; give a directory")
        if path.exists() and any(path.iterdir()) and not self._overwrite:
            raise SinkError(
                f'sink directory {path} is not empty; give another, or options = {{ mode = "overwrite" }}'
            )
        if self._overwrite and path.exists() and any(path.iterdir()):
            is_delta = (path / "_delta_log").exists()
            if is_delta != (self._format == "delta"):
                raise SinkError(
                    f"sink directory {path} holds another format than {self._format}; give another directory"
                )
        _check_writable(path if self._format == "delta" else path.parent, path)

    def _write_parquet(self, frame: DataFrame, path: Path) -> None:
        with _unfinished(path.parent, path.name) as made:
            frame.write.parquet(str(made))
            self.check_wanted()
            self.rows = sum(pq.read_metadata(file).num_rows for file in sorted(made.glob("*.parquet")))
            try:
                if path.exists():
                    shutil.rmtree(path)
                made.rename(path)
            except OSError as error:
                raise SinkError(f"sink {path} cannot be written: {error.strerror}") from None

    def _write_delta(self, frame: DataFrame, path: Path) -> None:
        with _unfinished(path, "files") as made:
            frame.write.parquet(str(made))
            self.check_wanted()
            written = sorted(made.glob("*.parquet"))
            names = [f"part-{uuid.uuid4().hex}-{number:05d}.parquet" for number in range(len(written))]
            actions = []
            for file, name in zip(written, names, strict=True):
                count = pq.read_metadata(file).num_rows
                self.rows += count
                size, now = file.stat().st_size, time.time_ns() // 1_000_000
                actions.append(AddAction(name, size, {}, now, True, f'{{"numRecords":{count}}}'))
            moved: list[Path] = []
            try:
                schema = Schema.from_arrow(pq.read_schema(written[0]))
                for file, name in zip(written, names, strict=True):
                    moved.append(file.rename(path / name))
                if (path / "_delta_log").exists():
                    DeltaTable(path).create_write_transaction(list(actions), "overwrite", schema)
                else:
                    create_table_with_add_actions(str(path), schema, list(actions), mode="error")
            except (DeltaError, OSError, ValueError) as error:
                for file in moved:
                    file.unlink(missing_ok=True)
                raise SinkError(
                    f"cannot commit to Delta table {path}: {' '.join(str(error).split())}"
                ) from error


def _check_writable(directory: Path, sink: Path) -> None:
    """Write a few bytes where the result will go; remove them and the directories created for them."""
    created = NewDirectories(Storage(str(directory)))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".spillway-probe-") as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise SinkError(
            f"sink {sink} cannot be written: {directory}: {error.strerror}; make room or "
            "allow writing there, or give another path"
        ) from None
    finally:
        created.remove_empty()


@contextmanager
def _unfinished(parent: Path, name: str) -> Iterator[Path]:
    """A path beside the target that readers skip; whatever it holds at the end is removed."""
    made = parent / f".{name}.unfinished-{uuid.uuid4().hex[:8]}"
    created = NewDirectories(Storage(str(parent)))
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SinkError(f"sink directory {parent} cannot be created: {error.strerror}") from None
    try:
        yield made
    except BaseException:
        _remove_for_good(made)
        created.remove_empty()
        raise
    shutil.rmtree(made, ignore_errors=True)


def _remove_for_good(directory: Path) -> None:
    """Remove a directory until it stays away: tasks of a cancelled job live on, and create it again."""
    started = quiet_since = time.monotonic()
    while time.monotonic() < min(quiet_since + QUIET_SECONDS, started + PATIENCE_SECONDS):
        if directory.exists():
            shutil.rmtree(directory, ignore_errors=True)
            quiet_since = time.monotonic()
        time.sleep(0.05)
