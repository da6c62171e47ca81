"""What stays in the state of statistics: the rows that frames of later rows may reach."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spillway.state.frame.frames import OrderedRows, keys_differ, ordered_rows
from spillway.state.rows import EventTimes, Expiry, Int64Array, SortedRows


@dataclass(frozen=True, slots=True)
class FrameRetention:
    """Rows stay by time, and the last rows of each key whatever their time."""

    groups: int
    key_columns: tuple[int, ...]
    time: int
    order: tuple[int, ...]
    last_rows: int
    """How many of the last rows of a key stay."""
    since: int | None
    """The event time from which all rows stay; None: time keeps no row."""
    expiry: Expiry
    swept: int | None
    """The watermark of the epoch."""

    def retained(
        self,
        input_: int,  # noqa: ARG002 - there is one
        rows: SortedRows,
        newer: Sequence[SortedRows],
    ) -> SortedRows:
        """The rows that later frames may reach, in the order of their keys."""
        if not rows.rows:
            return rows
        ordered = ordered_rows(rows.hashes, rows.columns, self.key_columns, self.time, self.order)
        last: int | Int64Array = self.last_rows
        if self.last_rows:
            last = np.maximum(0, self.last_rows - self._rows_after(rows, ordered, newer))
        return rows.take(ordered.rows[ordered.needed(last, self.since)])

    def times(self, input_: int, rows: SortedRows) -> EventTimes | None:
        """With frames of rows a run is swept of what newer rows of its key make superfluous."""
        times = self.expiry.times(input_, rows)
        if times is None or not self.last_rows or self.swept is None:
            return times
        return times._replace(swept=self.swept)

    def _rows_after(self, rows: SortedRows, ordered: OrderedRows, newer: Sequence[SortedRows]) -> Int64Array:
        """Per row in order, how many rows of its key are in newer state."""
        firsts, sizes = np.unique(ordered.begins, return_counts=True)
        heads = ordered.rows[firsts]
        keys = [rows.columns.column(column).take(pa.array(heads)) for column in self.key_columns]
        counts = np.zeros(len(heads), dtype=np.int64)
        for segment in newer:
            found, of = segment.matches(rows.hashes[heads], self.groups)
            theirs = [segment.columns.column(column).take(pa.array(found)) for column in self.key_columns]
            mine = [key.take(pa.array(of)) for key in keys]
            same = of[~keys_differ(mine, theirs, len(of))]
            counts += np.bincount(same, minlength=len(heads))
        return np.repeat(counts, sizes)
