"""Where the results of an operator go: over edges to inputs of others, and over roots to results of views.

An operator may have any number of both, and an input or a named result may have any number of producers:
their rows together are a UNION ALL. On its way a row may be left out, and its columns may be computed;
nothing is kept. Expressions refer to the outputs of the producer as columns of input 0.

Known limit: a row keeps no sign, so no edge can take rows back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.plan.expression import Columns, Expression, Labels, evaluate
from spillway.state.rows import Int64Array


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows go on, and the columns that they have from there on."""

    outputs: tuple[Expression, ...]
    schema: pa.Schema
    """Names and types of the outputs."""
    predicate: Expression | None = None
    """Rows go on for which it is true."""


@dataclass(frozen=True, slots=True)
class OperatorEdge:
    """From the results of an operator to an input of another."""

    producer: int
    consumer: int
    input: int
    keys: int = 0
    """How many of the first columns make up the hash of a row there; 0: a row keeps the hash that it has."""
    hashed: bool = True
    """Whether these columns are hashes already; otherwise their values are hashed as Spark does it, and a row
    without one of them does not go on: null equals nothing."""
    keeps_group: bool = False
    """A row has the same group there as here, whatever its key is."""
    traced: bool = False
    """Whether the number of its group here is the last column of a row there."""
    selection: Selection | None = None
    """None: all rows go on as they are."""


@dataclass(frozen=True, slots=True)
class Root:
    """From the results of an operator to the result of a view."""

    producer: int
    name: str = ""
    """Of the result; that of a query with one view has no name."""
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class Produced:
    """Some results of an operator."""

    schema: pa.Schema
    hashes: Int64Array
    groups: Int64Array
    """Of the operator, one for each row."""
    arrays: Sequence[pa.Array]

    @property
    def rows(self) -> int:
        return len(self.hashes)

    def selected(self, selection: Selection | None) -> "Produced":
        """What goes on."""
        if selection is None:
            return self
        rows = self if selection.predicate is None else self._where(selection.predicate)
        columns, labels = rows._columns, rows._labels
        arrays = []
        for value, field in zip(selection.outputs, selection.schema, strict=True):
            array = evaluate(value, columns, rows.rows, labels)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return Produced(selection.schema, rows.hashes, rows.groups, arrays)

    def with_values(self, columns: int) -> "Produced":
        """The rows that have a value in each of the first columns."""
        nullable = [array for array in self.arrays[:columns] if array.null_count]
        if not nullable:
            return self
        return self._at(np.flatnonzero(reduce(pc.and_, [array.is_valid() for array in nullable])))

    def _where(self, predicate: Expression) -> "Produced":
        keep = evaluate(predicate, self._columns, self.rows, self._labels)
        return self._at(np.flatnonzero(keep.fill_null(False)))

    def _at(self, chosen: Int64Array) -> "Produced":
        if len(chosen) == self.rows:
            return self
        taken = pa.array(chosen)
        arrays = [array.take(taken) for array in self.arrays]
        return Produced(self.schema, self.hashes[chosen], self.groups[chosen], arrays)

    @property
    def _columns(self) -> Columns:
        return lambda ref: self.arrays[ref.column]

    @property
    def _labels(self) -> Labels:
        return lambda ref: self.schema.field(ref.column).name
