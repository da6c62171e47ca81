"""A part of a file that one task reads: some of its row groups, or of the record batches of an Arrow file.

A plain value that is pickled to tasks. It names the size that the file had on the driver, so a file that was
replaced since is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PARQUET: Literal["parquet"] = "parquet"
ARROW: Literal["arrow"] = "arrow"


@dataclass(frozen=True, slots=True)
class Split:
    tag: int
    """The input that reads it, as in its `ScanInput`; a file may be read by several."""
    path: str
    """On a file system that every task can open."""
    format: Literal["parquet", "arrow"]
    groups: tuple[int, ...]
    """Numbers of row groups or record batches, ascending."""
    rows: int
    """Before the filter."""
    bytes: int
    """Of the columns that are read, not compressed."""
    file_bytes: int
    partitions: tuple[tuple[str, str | None], ...] = ()
    """Columns that are constant in the file, by name, with their values as text."""
