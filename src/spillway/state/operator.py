"""What a worker must know of an m-way join to run it: the operator without its state.

A plain value, pickled to the workers. Columns of an input are numbered as in its runs (the hash not
counted); the key columns come last and are there only when equal hashes do not imply equal keys.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from spillway.model.window import Window
from spillway.plan.expression import Expression

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
    def waiting_time(self) -> int | None:
        """The column by whose time a row waits until the watermark has passed it; None: no row does."""


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

    @property
    def waiting_time(self) -> int | None:
        return None
