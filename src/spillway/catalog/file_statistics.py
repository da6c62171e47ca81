"""Statistics of a view's inputs from the files that their sources have now, for the choice of a tree.

Parquet files, also those of Delta tables: rows and ranges of keys from footers, then samples of rows within
`LIMIT_SECONDS` for all inputs together, which say what filters let pass and how often keys repeat. Text: rows
by the length of the first lines. Of a source with more than `MOST_FILES` files only `MOST_FILES` are read;
its rows are in proportion to bytes, and its numbers of distinct keys are left open.

Known limit: files that come later are not known. Sources that are not files on this machine, and directories
without files, have no statistics.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.catalog.delta import DeltaFeatureError, delta_files, open_delta
from spillway.catalog.place import local_path
from spillway.catalog.source_files import list_files
from spillway.compute import Footers, ParquetRelation, RelationStatistics
from spillway.job import SourceSpec
from spillway.plan.rules import AskedInput, InputStatistics, NoStatistics
from spillway.plan.typing import NeedsSparkError

LIMIT_SECONDS = 0.25
MOST_FILES = 32
TEXT_FORMATS = ("csv", "json", "text")
TEXT_BYTES = 1 << 16
UNTESTED_SHARE = 1 / 3
"""The share of rows that a filter on text is taken to let pass."""
_COLUMN = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of an input that are looked at."""

    format: str
    paths: tuple[str, ...]
    scale: float
    """The bytes of all files, over those of these."""


class FileStatistics:
    """Answers for the inputs of views over these sources."""

    def __init__(self, sources: Mapping[str, SourceSpec]) -> None:
        """What is missing, such as a DataFrame, has no statistics."""
        self._sources = sources

    def __call__(self, inputs: Sequence[AskedInput]) -> tuple[InputStatistics, ...] | NoStatistics:
        try:
            files = [_files(input_, self._sources.get(input_.source)) for input_ in inputs]
            return _statistics(inputs, files)
        except (NeedsSparkError, OSError, ValueError, pa.ArrowException) as error:
            return NoStatistics(" ".join(str(error).split()))  # what is wrong with a source, the run says


def _files(input_: AskedInput, spec: SourceSpec | None) -> _Files:
    if spec is None:
        raise NeedsSparkError(f"source {input_.source} is a DataFrame")
    kind = spec.format.lower()
    if kind not in ("parquet", "delta", *TEXT_FORMATS) or spec.path is None:
        raise NeedsSparkError(f'[sources.{spec.name}] has format = "{spec.format}"')
    path = local_path(spec)
    paths = _delta_paths(path) if kind == "delta" else list_files(path).paths
    if not paths:
        raise NeedsSparkError(f"[sources.{spec.name}] path = {spec.path} has no files yet")
    chosen = paths[:: -(-len(paths) // MOST_FILES)]
    if len(chosen) == len(paths):
        return _Files(kind, paths, 1.0)
    return _Files(kind, chosen, _bytes(paths) / max(_bytes(chosen), 1))


def _delta_paths(root: str) -> tuple[str, ...]:
    from deltalake.exceptions import DeltaError

    try:
        found = delta_files(open_delta(root), root, ())
    except (DeltaError, DeltaFeatureError) as error:
        raise NeedsSparkError(f"Delta table {root} cannot be read by its log alone: {error}") from None
    return tuple(path for paths in found.values() for path in paths)


def _statistics(inputs: Sequence[AskedInput], files: Sequence[_Files]) -> tuple[InputStatistics, ...]:
    stored = [number for number, of_input in enumerate(files) if of_input.format not in TEXT_FORMATS]
    with Footers([_relation(inputs[number], files[number]) for number in stored]) as footers:
        rows = dict(zip(stored, footers.rows, strict=True))
        sampled = dict(zip(stored, footers.statistics(LIMIT_SECONDS, time.perf_counter), strict=True))
    return tuple(
        _of_text(input_, files[number])
        if number not in sampled
        else _of_footers(input_, files[number], rows[number], sampled[number])
        for number, input_ in enumerate(inputs)
    )


def _relation(input_: AskedInput, files: _Files) -> ParquetRelation:
    """Keys that are columns of the files; what a key of another kind has is left open."""
    names = {name.lower(): name for name in pq.read_schema(files.paths[0]).names}
    columns = {key: _COLUMN.fullmatch(key) for key in input_.keys.values()}
    found = {
        key: names[name]
        for key, column in columns.items()
        if column is not None and (name := column[1].replace("``", "`").lower()) in names
    }
    return ParquetRelation(files.paths, tuple(found.items()), frozenset(found), input_.filter)


def _of_footers(
    input_: AskedInput, files: _Files, all_rows: int, sampled: RelationStatistics
) -> InputStatistics:
    """Rows with a null key join nothing."""
    joining = min([sampled.rows, *(key.rows for key in sampled.keys.values())])
    distinct = {
        key_class: key.distinct if key.domain is None else key.domain
        for key_class, text in input_.keys.items()
        if files.scale == 1 and (key := sampled.keys.get(text)) is not None
    }
    return InputStatistics(joining * files.scale, all_rows * files.scale, distinct)


def _of_text(input_: AskedInput, files: _Files) -> InputStatistics:
    with Path(files.paths[0]).open("rb") as file:
        head = file.read(TEXT_BYTES)
    rows = files.scale * _bytes(files.paths) * max(head.count(b"\n"), 1) / max(len(head), 1)
    return InputStatistics(rows * (1 if input_.filter is None else UNTESTED_SHARE), rows, {})


def _bytes(paths: Sequence[str]) -> int:
    return sum(Path(path).stat().st_size for path in paths)
