"""The journal: an append-only record, one JSON object a line, of what happened in each epoch.

Progress lines, reports and figures read only this. It lies beside the checkpoint and is not needed for
correctness: a line that a kill cut short is dropped when the journal is opened again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

FILE_NAME = "journal.jsonl"


class Journal:
    """Appends entries to the journal file and hands each to the listeners."""

    def __init__(self, path: Path | None) -> None:
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _drop_cut_line(path)
            self._file = path.open("a", encoding="utf-8")

    def append(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


def _drop_cut_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            file.truncate(complete)
