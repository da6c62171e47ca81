"""What a worker must know of an m-way join to run it: the operator without its state.

A plain value, pickled to the workers. Columns of an input are numbered as in its runs (the hash not
counted); the key columns come last and are there only when equal hashes do not imply equal keys.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from spillway.model.group_set import GroupSet
from spillway.model.window import Window
from spillway.plan.expression import ColumnRef, Expression

TAG_COLUMN = "t"
HASH_WIRE_COLUMN = "h"


@dataclass(frozen=True, slots=True)
class WireInput:
    """How the rows of one input lie in the shuffled batches: the wire column of each state column."""

    name: str
    columns: tuple[str, ...]
    slots: tuple[str, ...]


class Operator(Protocol):
    """What all stateful operators have."""

    @property
    def inputs(self) -> tuple[WireInput, ...]: ...

    @property
    def groups(self) -> int: ...

    @property
    def result_schema(self) -> pa.Schema: ...

    @property
    def windows(self) -> tuple[Window, ...]: ...

    @property
    def lineage(self) -> tuple[tuple[int, ColumnRef], ...]:
        """Operators upstream, and the column with the group that a row came through."""

    @property
    def waiting_time(self) -> int | None:
        """The column by whose time a row waits until the watermark has passed it; None: no row does."""

    @property
    def splittable(self) -> bool:
        """Whether a group may consist of several generations; otherwise it is suspended, never spilled."""

    def above(self, groups: GroupSet) -> GroupSet: ...


@dataclass(frozen=True, slots=True)
class Emission:
    """Where the results of a join go that is not the root of its tree."""

    operator: int
    """The parent in the tree, and which of its inputs this is."""
    input: int
    hashes: int
    """How many of the first outputs make up the hash of a row there."""
    keeps_group: bool = False
    """A row has the same group there as here, whatever its key is."""


@dataclass(frozen=True, slots=True)
class JoinOperator:
    inputs: tuple[WireInput, ...]
    outputs: tuple[Expression, ...]
    residual: Expression | None
    key_columns: tuple[tuple[int, ...], ...]
    groups: int
    result_schema: pa.Schema
    windows: tuple[Window, ...] = ()
    """One per input, or none at all."""
    lineage: tuple[tuple[int, ColumnRef], ...] = ()
    """Joins below in the tree, and the column with the group that a row came through."""
    emission: Emission | None = None
    """None: the results are those of the view."""

    def above(self, groups: GroupSet) -> GroupSet:  # noqa: ARG002 - nothing is above a single join
        """Groups that may still get rows from missing results of these."""
        return 0

    @property
    def waiting_time(self) -> int | None:
        return None

    @property
    def splittable(self) -> bool:
        """What generations miss together, a clean-up produces."""
        return True
