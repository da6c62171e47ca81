"""The journal: an append-only record, one JSON object a line, of what happened in each epoch.

Progress lines, reports and figures read only this. It lies beside the checkpoint and is not needed for
correctness: a line that a kill cut short is dropped when the journal is opened again.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from spillway.errors import StateError, file_reason

FILE_NAME = "journal.jsonl"


class Journal:
    """Appends entries to the journal file and hands each to the listeners."""

    def __init__(self, path: Path | None) -> None:
        self._file = None
        if path is not None:
            with _naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _drop_cut_line(path)
                self._file = path.open("a", encoding="utf-8")

    def append(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            with _naming(Path(self._file.name)):
                self._file.write(json.dumps(entry, separators=(",", ":")) + "\n")
                self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):  # a line that did not fit on the disk was reported when it was written
                file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"cannot write the journal {path}: {file_reason(error)}") from error


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The entries, oldest first; a last line that is being written, or was cut short, is left out."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if not isinstance(entry, dict):
                raise StateError(f"journal {path} is damaged: line {number} is not a JSON object; remove it")
            yield entry


def _drop_cut_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            file.truncate(complete)
