"""Statistics of a view's relations, kept from one computation to the next while no file has changed.

The name of an entry is a digest of what was asked (relations, filters, keys, sample) and of every input file
with its size and time of change, so that an entry is never wrong, only unused. Relations that are not read
from local files have no entry, nor are they looked for. Known limit: old entries are never removed.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from spillway.compute.compute_view import ComputeView
from spillway.compute.sketch import KeySketch, RelationStatistics
from spillway.cost_file import default_path

_FORMAT = 2


def cached_statistics(
    view: ComputeView,
    sources: Sequence[DataFrame],
    collect: Callable[[], list[RelationStatistics]],
    *,
    sample: float,
) -> list[RelationStatistics]:
    """The statistics of a view's relations, from the cache where they are there; `collect` makes them."""
    name = _digest(view, sources, sample)
    if name is None:
        return collect()
    file = default_path().parent / "statistics" / f"{name}.npz"
    try:
        return _read(file)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        made = collect()  # not there, or damaged: made anew
    _write(file, made)
    return made


def _digest(view: ComputeView, sources: Sequence[DataFrame], sample: float) -> str | None:
    files: list[tuple[str, int, int]] = []
    for frame in sources:
        names = frame.inputFiles()
        if not names or any(urlsplit(one).scheme != "file" for one in names):
            return None
        for one in sorted(names):
            path = unquote(urlsplit(one).path)
            try:
                found = os.stat(path)  # noqa: PTH116 - only numbers are needed
            except OSError:
                return None
            files.append((path, found.st_size, found.st_mtime_ns))
    asked = [
        [one.source, one.filter, [column.expression for column in one.columns]] for one in view.relations
    ]
    keys = [[key.label, key.members] for key in view.keys]
    text = json.dumps([_FORMAT, asked, keys, sample, files])
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> list[RelationStatistics]:
    with np.load(file, allow_pickle=False) as stored:
        document, counters = json.loads(str(stored["document"])), stored["counters"]
    return [
        RelationStatistics(
            one["rows"],
            one["row_bytes"],
            {name: KeySketch(counters[at], rows, distinct) for name, at, rows, distinct in one["keys"]},
            one["tasks"],
        )
        for one in document
    ]


def _write(file: Path, statistics: Sequence[RelationStatistics]) -> None:
    counters: list[npt.NDArray[np.float64]] = []
    document = []
    for one in statistics:
        keys = []
        for name, key in one.keys.items():
            keys.append((name, len(counters), key.rows, key.distinct))
            counters.append(key.counters)
        document.append({"rows": one.rows, "row_bytes": one.row_bytes, "tasks": one.tasks, "keys": keys})
    unfinished = file.with_name(f".{os.getpid()}-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(unfinished, document=np.array(json.dumps(document)), counters=np.stack(counters))
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)  # a cache that cannot be written costs time, nothing else
