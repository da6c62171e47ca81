"""About how many rows a file has, from its size.

The first files of an input say how many rows they have per byte (`sampled_ratio`: the footer of a Parquet
file, the lines at the start of a text file). What epochs really had corrects that: filters drop rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.manager.files.entry import FileBatch, FileEntry

UNKNOWN_RATIO = 1 / 64
SAMPLE_BYTES = 1 << 16
WEIGHT = 0.5
"""Of the last epoch."""


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """Rows per byte of each input, and by how much they were wrong."""

    ratios: tuple[float, ...]
    correction: float = 1.0

    def rows_of(self, number: int, entry: FileEntry) -> float:
        return entry.size_bytes * self.ratios[number] * self.correction

    def rows_in(self, sizes: Sequence[int]) -> float:
        """Rows of so many bytes of each input."""
        return sum(size * ratio for size, ratio in zip(sizes, self.ratios, strict=True)) * self.correction

    def rows(self, batch: FileBatch) -> float:
        return sum(self.rows_of(number, entry) for number, files in enumerate(batch.files) for entry in files)

    def learned(self, batch: FileBatch, rows: int) -> "RowEstimate":
        """The estimate after the epoch of a batch had so many rows."""
        expected = self.rows(batch)
        if expected < 1 or rows < 1:
            return self
        seen = self.correction * rows / expected
        return replace(self, correction=(1 - WEIGHT) * self.correction + WEIGHT * seen)


def sampled_ratio(file_format: str, entry: FileEntry) -> float:
    """Rows per byte of a file on this machine."""
    try:
        if file_format == "parquet":
            rows = int(pq.read_metadata(entry.path).num_rows)
            return max(rows, 1) / max(entry.size_bytes, 1)
        if file_format in ("csv", "json", "text"):
            with pa.OSFile(entry.path) as file:
                start = file.read(SAMPLE_BYTES)
            return float(max(start.count(b"\n"), 1) / max(len(start), 1))
    except (OSError, pa.ArrowException):
        return UNKNOWN_RATIO  # whoever reads the file reports what is wrong with it
    return UNKNOWN_RATIO
