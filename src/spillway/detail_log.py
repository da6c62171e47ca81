"""Where the details of a failure go: the screen gets one line, a file gets stack traces and what Spark said.

The file is `spillway.log` in the checkpoint, or a temporary one if the checkpoint is not local or its disk is
full. It is written when something fails, so a run without failures leaves none. Invariant: all text passes
through `cleaned`. Known limit: one older file is kept (`spillway.log.1`).
"""

import os
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from spillway.redaction import redacted

FILE_NAME = "spillway.log"
MOST_BYTES = 4 << 20
"""A file that is larger than this makes room for a new one; an entry is cut to this."""
_NOTE = "details: "


def cleaned(text: str) -> str:
    """The text as it may be kept and shown. Everything that is written or echoed here passes through."""
    return redacted(text)


class DetailLog:
    """Takes failures down in one file; `said` gives what Spark and its workers said up to now."""

    def __init__(self, path: Path | None, said: Callable[[], str] = lambda: "") -> None:
        self._path = path
        self._said = said

    def record(self, error: BaseException) -> None:
        """Write an error with its causes, and note on it where that is."""
        entry = self._entry(error)
        path = self._append(entry) if self._path is not None else None
        path = path or _temporary(entry)
        if path is not None:
            error.add_note(f"{_NOTE}{path}")

    def _entry(self, error: BaseException) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S %z")
        trace = "".join(traceback.format_exception(error))
        said = self._said()
        spark = f"\n--- what Spark and its workers said ---\n{said}" if said else ""
        return cleaned(f"=== {when}, process {os.getpid()}: {error}\n{trace}{spark}\n")[:MOST_BYTES]

    def _append(self, entry: str) -> Path | None:
        assert self._path is not None
        try:
            if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(entry)
        except OSError:
            return None  # the disk may be what failed
        return self._path


def log_of(error: BaseException) -> str | None:
    """The file that has the details of an error; None if nothing was written."""
    notes = (note for note in getattr(error, "__notes__", ()) if note.startswith(_NOTE))
    return next((note.removeprefix(_NOTE) for note in notes), None)


def _temporary(entry: str) -> Path | None:
    """A new file, readable by this user alone."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="spillway-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(entry)
    except OSError:
        return None
    return Path(name)
