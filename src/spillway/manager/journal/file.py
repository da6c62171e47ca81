"""The journal file: one entry a line, as a JSON object; lines are only appended.

Reports and figures read nothing else. It is beside the checkpoint and not needed for correctness: a line that
a kill cut short is dropped when the journal is opened again.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from spillway.errors import StateError, file_reason
from spillway.manager.journal.entry import EpochEntry
from spillway.model import compact, from_json, to_json
from spillway.redaction import redacted_values

FILE_NAME = "journal.jsonl"
FREE_TEXTS = ("reason", "error")


class Journal:
    """Appends entries, which are records of any class, to a file; without a path, to none."""

    def __init__(self, path: Path | None) -> None:
        self._file = None
        if path is not None:
            with _naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _drop_cut_line(path)
                self._file = path.open("a", encoding="utf-8")

    def append(self, entry: Any) -> None:
        if self._file is not None:
            with _naming(Path(self._file.name)):
                self._file.write(compact(_shown(to_json(entry))) + "\n")
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


def _shown(value: Any) -> Any:
    """An entry without hidden values. Only its free texts can have some; other words must stay readable."""
    if isinstance(value, dict):
        return {
            key: redacted_values(part) if key in FREE_TEXTS else _shown(part) for key, part in value.items()
        }
    return [_shown(part) for part in value] if isinstance(value, list | tuple) else value


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"cannot write the journal {path}: {file_reason(error)}") from error


def read_journal(path: Path) -> Iterator[EpochEntry]:
    """The epochs, oldest first; a last line that is being written, or was cut short, is left out.

    Lines of older versions lack keys, which have defaults then; those of later versions may have more.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            damaged = f"journal {path} is damaged: line {number} is not"
            try:
                body = json.loads(line)
            except ValueError:
                body = None
            if not isinstance(body, dict):
                raise StateError(f"{damaged} a JSON object; remove it")
            yield from_json(EpochEntry, body, f"{damaged} an epoch", remedy="remove it", newer=True)


def _drop_cut_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            file.truncate(complete)
