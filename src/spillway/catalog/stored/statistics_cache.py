"""Statistics of a view's relations, kept from one computation to the next while no file has changed.

The name of an entry is a digest of the request (relations, filters, keys, sample) and of every relation's
input files with their sizes and modification times, so that an entry is never wrong, only unused. Beside it
is the memory that runs measured, over the estimate. A view has an entry only if all of its relations are read
from local files. Known limit: old entries are never removed.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

from spillway.compute import ComputeView, KeySketch, RelationStatistics
from spillway.job import SourceSpec, cache_directory

_FORMAT = 3
_LEAST_FACTOR, _MOST_FACTOR = 0.5, 100.0


class StatisticsCache:
    """The entry of one view."""

    def __init__(self, name: str | None) -> None:
        """`name` is that of the entry; None: there is none."""
        self._name = name

    @classmethod
    def of(
        cls,
        view: ComputeView,
        files: Mapping[str, Sequence[str]],
        specs: Mapping[str, SourceSpec],
        sample: float | None,
    ) -> "StatisticsCache":
        """`files` are the names of each source's input files, if its rows depend on nothing else; `specs` say
        how they are read."""
        return cls(_digest(view, files, specs, sample))

    def statistics(self, collect: Callable[[], list[RelationStatistics]]) -> list[RelationStatistics]:
        """The statistics of the view's relations: cached ones, or those that `collect` returns."""
        if self._name is None:
            return collect()
        file = self._file("npz")
        try:
            return _read(file)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            made = collect()  # missing or damaged
        _write(file, made)
        return made

    def factors(self) -> dict[str, float]:
        """By way: the memory that the last run measured, over the estimate."""
        if self._name is None:
            return {}
        try:
            stored = json.loads(self._file("json").read_text(encoding="utf-8"))
            return {str(way): min(max(float(f), _LEAST_FACTOR), _MOST_FACTOR) for way, f in stored.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}  # missing or damaged

    def learn(self, way: str, factor: float) -> None:
        if self._name is None:
            return
        text = json.dumps({**self.factors(), way: round(factor, 4)})
        _store(self._file("json"), lambda file: file.write_text(text, encoding="utf-8"))

    def _file(self, kind: str) -> Path:
        return cache_directory() / "statistics" / f"{self._name}.{kind}"


def _digest(
    view: ComputeView,
    files: Mapping[str, Sequence[str]],
    specs: Mapping[str, SourceSpec],
    sample: float | None,
) -> str | None:
    asked = []
    for relation in view.relations:
        names, spec = files.get(relation.source), specs.get(relation.source)
        if not names or spec is None or any(urlsplit(name).scheme != "file" for name in names):
            return None
        read = [spec.format, spec.path, spec.schema, sorted(spec.options.items())]
        found = []
        for name in sorted(names):
            path = unquote(urlsplit(name).path)
            try:
                known = os.stat(path)  # noqa: PTH116 - only numbers are needed
            except OSError:
                return None
            found.append((path, known.st_size, known.st_mtime_ns))
        asked.append([read, found, relation.filter, [column.expression for column in relation.columns]])
    keys = [[key.label, key.members] for key in view.keys]
    text = json.dumps([_FORMAT, asked, keys, sample])
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> list[RelationStatistics]:
    with np.load(file, allow_pickle=False) as stored:
        document, counters = json.loads(str(stored["document"])), stored["counters"]
    return [
        RelationStatistics(
            entry["rows"],
            entry["row_bytes"],
            {
                name: KeySketch(None if at is None else counters[at], rows, distinct, domain, share)
                for name, at, rows, distinct, domain, share in entry["keys"]
            },
            entry["tasks"],
        )
        for entry in document
    ]


def _write(file: Path, statistics: Sequence[RelationStatistics]) -> None:
    counters: list[npt.NDArray[np.float64]] = []
    document = []
    for relation in statistics:
        keys = []
        for name, key in relation.keys.items():
            at = None if key.counters is None else len(counters)
            keys.append((name, at, key.rows, key.distinct, key.domain, key.share))
            if key.counters is not None:
                counters.append(key.counters)
        document.append(
            {"rows": relation.rows, "row_bytes": relation.row_bytes, "tasks": relation.tasks, "keys": keys}
        )
    stacked = np.stack(counters) if counters else np.zeros((0, 0))

    def write(unfinished: Path) -> None:
        np.savez(unfinished, document=np.array(json.dumps(document)), counters=stacked)

    _store(file, write)


def _store(file: Path, write: Callable[[Path], object]) -> None:
    unfinished = file.with_name(f".{os.getpid()}-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(unfinished)
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)  # without a cache the next run only takes longer
