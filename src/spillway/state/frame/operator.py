"""What a worker must know of a grouped windowed aggregate to run it: the operator without its state.

A plain value, pickled to the workers. Columns are numbered as in waiting rows; the first `kept` of them, with
the key columns among them, are those of state, so both number them alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from spillway.model import Statistic, Window, kept_range_us, kept_rows
from spillway.plan.expression import Expression
from spillway.state.frame.retention import FrameRetention
from spillway.state.orders import Orders
from spillway.state.rows import NEVER, CompactionLimits, Expiry, Run, superseded
from spillway.state.step import Lineage, Merges, Retention, WireInput


@dataclass(frozen=True, slots=True)
class FrameOperator:
    kind: ClassVar[str] = "frame"
    inputs: tuple[WireInput]
    outputs: tuple[Expression, ...]
    """Over the columns of the row (input 0) and its statistics (input 1)."""
    statistics: tuple[Statistic, ...]
    key_columns: tuple[int, ...]
    time: int
    order: tuple[int, ...]
    kept: int
    lateness_us: int
    groups: int
    result_schema: pa.Schema
    statistic_labels: tuple[str, ...] = ()
    """What the user calls each statistic, for messages."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """Event time, and how far later rows look back; by number of rows they may look back at any time."""
        range_us = None if self.kept_rows else kept_range_us(self.statistics)
        return (Window(self.time, range_us, self.lateness_us),)

    @property
    def lineage(self) -> tuple[Lineage, ...]:
        return ()

    @property
    def wait_column(self) -> int | None:
        return self.time

    @property
    def splittable(self) -> bool:
        """A statistic needs all earlier rows of its frame: none can be had from a part of the group."""
        return False

    @property
    def kept_rows(self) -> int:
        """How many of the last rows of a key stay in state, whatever their time."""
        return kept_rows(self.statistics)

    def needed_since(self, earliest: int | None) -> int | None:
        """The event time from which rows stay in state, when no earlier row than `earliest` can come.

        None where time keeps no row; `NEVER` where it keeps all of them.
        """
        range_us = kept_range_us(self.statistics)
        if range_us is None:
            return None
        return NEVER if earliest is None else earliest - range_us

    def with_result_schema(self, schema: pa.Schema) -> "FrameOperator":
        return replace(self, result_schema=schema)

    def retention(self, orders: Orders) -> Retention:
        """Rows that wait may be older than the watermark, and reach further back."""
        waiting = [entry.earliest for entry in orders.pending if entry.earliest is not None]
        earliest = None if orders.watermark is None else min([orders.watermark, *waiting])
        return FrameRetention(
            groups=self.groups,
            key_columns=self.key_columns,
            time=self.time,
            order=self.order,
            last_rows=self.kept_rows,
            since=self.needed_since(earliest),
            expiry=Expiry(self.windows, earliest, orders.keep),
            swept=orders.watermark,
        )

    def extra_merges(self, runs: Sequence[Run], limits: CompactionLimits, merges: Merges) -> Merges:
        """Where the last rows of a key stay, newer rows replace older ones: runs full of those are swept."""
        return superseded(runs, limits, merges) if self.kept_rows else ()
