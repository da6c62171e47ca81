"""What a footer says about a file, as far as a scan needs it: rows, sizes and bounds of its row groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.scan.files.pruning import Bounds


class LeftToSparkError(Exception):
    """Only Spark reads the file as Spark does; the text says why."""


@dataclass(frozen=True, slots=True)
class GroupShape:
    """A row group, or a record batch of an Arrow file."""

    rows: int
    bytes: int
    """Of the columns that are read, not compressed."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """What its statistics say about columns, by name in lower case."""


@dataclass(frozen=True, slots=True)
class FileShape:
    bytes: int
    groups: tuple[GroupShape, ...]
    missing: frozenset[str] = frozenset()
    """The needed columns that the file lacks, in lower case."""
