"""From one operator to the next: results become input rows of another operator, by processor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from spillway.plan.expression import Columns, Expression
from spillway.state.rows import Int64Array, folded, group_of, hash_in_group
from spillway.state.step import HASH_WIRE_COLUMN, TAG_COLUMN, Operator, Written, output_arrays


class RowSink(Protocol):
    """Takes rows for an operator at a processor."""

    def __call__(self, processor: int, operator: int, batch: pa.RecordBatch) -> None: ...


@dataclass(frozen=True, slots=True)
class EdgeOutlet:
    """Where the results of an operator go: to the groups of another, which are placed on processors."""

    parent: Operator
    placement: tuple[int, ...]
    """The processor of each of the parent's groups."""
    send: RowSink

    def writer(self, operator: Operator, stem: str) -> "EdgeWriter":  # noqa: ARG002 - nothing gets a name
        return EdgeWriter(operator, self)


class EdgeWriter:
    """Takes the results of an operator, as a `ResultWriter` does, and makes them input of its parent."""

    def __init__(self, operator: Operator, outlet: EdgeOutlet) -> None:
        assert operator.edge is not None
        self._operator = operator
        self._edge = operator.edge
        self._outlet = outlet
        self._targets = np.array(outlet.placement, dtype=np.uint16)
        self._names = list(outlet.parent.inputs[self._edge.input].slots)
        self.rows = 0
        self.group_results: Int64Array = np.zeros(operator.groups, dtype=np.int64)
        self.lineage_results: dict[int, Int64Array] = {}

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        own = group_of(hashes, self._operator.groups)
        self.rows += len(hashes)
        self.group_results += np.bincount(own, minlength=self._operator.groups)
        arrays = output_arrays(self._operator, len(hashes), outputs, columns)
        parts = self._edge.hashes
        downstream = folded([part.to_numpy() for part in arrays[:parts]])
        if self._edge.keeps_group:
            downstream = hash_in_group(hashes, downstream)
        tags = pa.array(np.full(len(hashes), self._edge.input, dtype=np.int8))
        batch = pa.RecordBatch.from_arrays(
            [tags, pa.array(downstream), *arrays[parts:], pa.array(own.astype(np.uint16))],
            names=[TAG_COLUMN, HASH_WIRE_COLUMN, *self._names],
        )
        targets = self._targets[group_of(downstream, self._outlet.parent.groups)]
        send, parent = self._outlet.send, self._edge.operator
        first = int(targets[0])
        if bool((targets == first).all()):
            send(first, parent, batch)
            return
        for target in np.unique(targets):
            rows = np.flatnonzero(targets == target)
            send(int(target), parent, batch.take(pa.array(rows)))

    def close(self) -> Written:
        """None of the rows is in a file for the sink."""
        return ()
