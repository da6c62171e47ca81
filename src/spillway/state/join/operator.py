"""What a worker must know of an m-way join to run it: the operator without its state.

A plain value, pickled to the workers. The key columns of an input come last and are there only when equal
hashes do not imply equal keys.
"""

from dataclasses import dataclass

import pyarrow as pa

from spillway.model import GroupSet, Window
from spillway.plan.expression import ColumnRef, Expression
from spillway.state.step import Emission, WireInput


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
