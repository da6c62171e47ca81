"""What all stateful operators have, and how their rows lie on the wire.

Columns of an input are numbered as in its runs, the hash not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import pyarrow as pa

from spillway.model import Window
from spillway.plan.expression import Labels
from spillway.state.orders import Orders
from spillway.state.rows import CompactionLimits, Run
from spillway.state.step.lineage import Lineage
from spillway.state.step.retention import Retention

Merges = tuple[tuple[str, ...], ...]
"""Names of runs, each group of which becomes one."""

TAG_COLUMN = "t"
HASH_WIRE_COLUMN = "h"


@dataclass(frozen=True, slots=True)
class WireInput:
    """How the rows of one input lie in the shuffled batches: the wire column of each state column."""

    name: str
    columns: tuple[str, ...]
    slots: tuple[str, ...]
    labels: tuple[str, ...] = ()
    """What the user calls each column, for messages; none: the name of the column."""

    def label(self, column: int) -> str:
        return self.labels[column] if self.labels else f"{self.name}.{self.columns[column]}"


class Operator(Protocol):
    """What all stateful operators answer. A frozen value, pickled to workers; its step is found by kind."""

    kind: ClassVar[str]

    @property
    def inputs(self) -> tuple[WireInput, ...]: ...

    @property
    def groups(self) -> int: ...

    @property
    def result_schema(self) -> pa.Schema: ...

    @property
    def windows(self) -> tuple[Window, ...]: ...

    @property
    def lineage(self) -> tuple[Lineage, ...]:
        """Operators upstream whose groups rows came through."""

    @property
    def wait_column(self) -> int | None:
        """The column by whose time a row waits until the watermark has passed it; None: no row does."""

    @property
    def splittable(self) -> bool:
        """Whether a group may consist of several generations; otherwise it is suspended, never spilled."""

    def with_result_schema(self, schema: pa.Schema) -> Self: ...

    def retention(self, orders: Orders) -> Retention:
        """What stays in state in the epoch of these orders."""

    def extra_merges(self, runs: Sequence[Run], limits: CompactionLimits, merges: Merges) -> Merges:
        """Runs that are worth merging besides `merges`, which are chosen by size."""


def column_labels(operator: Operator) -> Labels:
    """What the user calls the columns of an operator's inputs."""
    return lambda ref: operator.inputs[ref.input].label(ref.column)
