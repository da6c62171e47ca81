"""Which files Spark put into a batch, from Spark's own logs in the checkpoint, before the batch is run.

    spark/offsets/B       one line per relation of the stream, in order: {"logOffset": K}, or - for none
    spark/sources/N/K     the files that source N found in its step K; every tenth, K.compact, has all so far

A relation that occurs twice has two lines in the offsets and one source.
"""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from spillway.errors import RESTORE, CheckpointError, StateError
from spillway.spark.sources.log_store import SPARK_DIRECTORY
from spillway.state.storage import Storage

VERSION = "v1"
_HEADER_LINES = 2
"""Lines at the start of an offsets file: its version, and the settings of the batch."""
COMPACT = ".compact"


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The logs of one query."""

    storage: Storage

    def of(self, batch_id: int, relation: int, source: int) -> list[str]:
        """The files of a relation in a batch; the relation is given by its place in the stream and in the
        log."""
        last = self._step(batch_id, relation)
        before = self._step(batch_id - 1, relation) if batch_id > 0 else None
        if last is None:
            return []
        first = 0 if before is None else before + 1
        return [path for step in range(first, last + 1) for path in self._found(source, step)]

    def first(self, directory: str) -> str | None:
        """The first file below a directory that any source has read; None if none has."""
        below = unquote(urlsplit(directory).path).rstrip("/") + "/"
        for source in self.storage.entries(f"{SPARK_DIRECTORY}/sources"):
            for path in self._found(int(source), 0) if source.isdecimal() else ():
                if unquote(urlsplit(path).path).startswith(below):
                    return path
        return None

    def _step(self, batch_id: int, relation: int) -> int | None:
        lines = self._lines(f"{SPARK_DIRECTORY}/offsets/{batch_id}")[_HEADER_LINES - 1 :]
        if relation >= len(lines) or lines[relation] == "-":
            return None
        return int(self._entry(f"{SPARK_DIRECTORY}/offsets/{batch_id}", lines[relation])["logOffset"])

    def _found(self, source: int, step: int) -> list[str]:
        directory = f"{SPARK_DIRECTORY}/sources/{source}"
        entries = set(self.storage.entries(directory))
        compacted = (name.removesuffix(COMPACT) for name in entries if name.endswith(COMPACT))
        later = sorted(int(number) for number in compacted if int(number) >= step)
        if str(step) not in entries and not later:
            return []
        name = str(step) if str(step) in entries else f"{later[0]}{COMPACT}"
        file = f"{directory}/{name}"
        found = (self._entry(file, line) for line in self._lines(file))
        return [str(entry["path"]) for entry in found if entry["batchId"] == step]

    def _entry(self, name: str, line: str) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise self._damaged(name)
        return entry

    def _damaged(self, name: str) -> StateError:
        return StateError(f"{self.storage.uri(name)}, a file of Spark's log, is corrupted; {RESTORE}")

    def _lines(self, name: str) -> list[str]:
        text: str = self.storage.read(name).to_pybytes().decode(errors="replace")
        version, *lines = text.splitlines() or [""]
        if re.fullmatch(r"v\d+", version) is None:
            raise self._damaged(name)
        if version != VERSION:
            raise CheckpointError(
                f"{self.storage.uri(name)} has Spark's log version {version}; Spillway reads {VERSION}: "
                "use the version of Spark that Spillway requires"
            )
        return lines
