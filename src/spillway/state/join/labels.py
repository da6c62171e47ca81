"""Labels of rows in a clean-up: the generation that each belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spillway.state.rows import Int64Array, SortedRows

UNSAID = -1
"""The label of rows that were written and joined with nothing."""
ABSENT = -2
"""The label of rows that do not count."""
Int32Array = np.typing.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Labels:
    """The generation of each row of an input, as combinations number the rows."""

    values: Int32Array
    offsets: Int64Array | None = None
    """If rows are labelled by segment: the number of the first row of each segment."""

    @classmethod
    def constant(cls, label: int) -> "Labels":
        return cls(np.array([label], dtype=np.int32), np.zeros(1, dtype=np.int64))

    @classmethod
    def of_segments(cls, labels: Int32Array, segments: Sequence[SortedRows]) -> "Labels":
        sizes = np.array([segment.rows for segment in segments], dtype=np.int64)
        return cls(labels, np.cumsum(sizes) - sizes)

    def of(self, rows: Int64Array) -> Int32Array:
        if self.offsets is None:
            return self.values[rows]
        return self.values[np.searchsorted(self.offsets, rows, side="right") - 1]
