"""What a worker must know of an m-way join to run it: the operator without its state.

A plain value, pickled to the workers. The key columns of an input come last and are there only when equal
hashes do not imply equal keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from spillway.model import Window
from spillway.plan.expression import Expression
from spillway.state.orders import Orders
from spillway.state.rows import CompactionLimits, Expiry, Run
from spillway.state.step import Lineage, Merges, Retention, WindowRetention, WireInput


@dataclass(frozen=True, slots=True)
class JoinOperator:
    kind: ClassVar[str] = "join"
    inputs: tuple[WireInput, ...]
    outputs: tuple[Expression, ...]
    residual: Expression | None
    key_columns: tuple[tuple[int, ...], ...]
    groups: int
    result_schema: pa.Schema
    windows: tuple[Window, ...] = ()
    """One per input, or none at all."""
    lineage: tuple[Lineage, ...] = ()
    """Operators upstream whose groups rows came through."""

    def with_result_schema(self, schema: pa.Schema) -> "JoinOperator":
        return replace(self, result_schema=schema)

    def retention(self, orders: Orders) -> Retention:
        """A row stays while rows that are in its window can come."""
        return WindowRetention(Expiry(self.windows, orders.watermark, orders.keep), self.groups)

    def extra_merges(self, runs: Sequence[Run], limits: CompactionLimits, merges: Merges) -> Merges:  # noqa: ARG002
        """None: a row of a join is never replaced by a newer one."""
        return ()

    @property
    def wait_column(self) -> int | None:
        return None

    @property
    def splittable(self) -> bool:
        """What generations miss together, a clean-up produces."""
        return True
