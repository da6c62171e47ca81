"""What a worker must know of a selection to run it: which rows go on, and what becomes of their columns.

A plain value, pickled to the workers. It has one input, which several sources and operators may feed.
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
class SelectOperator:
    kind: ClassVar[str] = "select"
    inputs: tuple[WireInput]
    outputs: tuple[Expression, ...]
    predicate: Expression | None
    """Rows go on for which it is true; None: all do."""
    groups: int
    result_schema: pa.Schema

    @property
    def windows(self) -> tuple[Window, ...]:
        return ()

    @property
    def lineage(self) -> tuple[Lineage, ...]:
        return ()

    @property
    def wait_column(self) -> int | None:
        return None

    @property
    def splittable(self) -> bool:
        """There is nothing to split."""
        return True

    def with_result_schema(self, schema: pa.Schema) -> "SelectOperator":
        return replace(self, result_schema=schema)

    def retention(self, orders: Orders) -> Retention:
        """No row stays."""
        return WindowRetention(Expiry((), orders.watermark, orders.keep), self.groups)

    def extra_merges(self, runs: Sequence[Run], limits: CompactionLimits, merges: Merges) -> Merges:  # noqa: ARG002
        """None: there are no runs."""
        return ()
