"""From one operator to the next: results become input rows of others, by processor, and result files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from spillway.plan.expression import Columns, Expression
from spillway.state.graph.edge import OperatorEdge, Produced, Root
from spillway.state.orders import Files
from spillway.state.rows import Int64Array, folded, group_of, hash_in_group, xxhash64
from spillway.state.step import (
    HASH_WIRE_COLUMN,
    TAG_COLUMN,
    Operator,
    ResultFiles,
    Task,
    Written,
    lineage_counters,
    output_arrays,
)


class RowSink(Protocol):
    """Takes rows for an operator at a processor."""

    def __call__(self, processor: int, operator: int, batch: pa.RecordBatch) -> None: ...


@dataclass(frozen=True, slots=True)
class PlacedEdge:
    """An edge, the operator that it leads to, and the processor of each of its groups."""

    edge: OperatorEdge
    consumer: Operator
    placement: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GraphOutlet:
    """Where the results of an operator go: over edges to groups of others, and to results by name."""

    edges: tuple[PlacedEdge, ...]
    roots: tuple[Root, ...]
    send: RowSink

    def writer(self, task: Task, sample: Callable[[], None]) -> "GraphWriter":
        return GraphWriter(task, self, sample)


class GraphWriter:
    """Takes the results of an operator, as a `ResultWriter` does, and gives them to each edge and root."""

    def __init__(self, task: Task, outlet: GraphOutlet, sample: Callable[[], None]) -> None:
        self._operator = operator = task.operator
        self._edges = [(placed.edge.selection, _EdgeRows(placed, outlet.send)) for placed in outlet.edges]
        orders = task.orders
        chunk_bytes = orders.limits.chunk_bytes // max(1, len(outlet.roots))
        self._roots = [
            (
                root,
                ResultFiles(
                    operator.result_schema if root.selection is None else root.selection.schema,
                    orders.staging.get(root.name),
                    task.file_name(f"{number}-parquet"),
                    orders.result_compression,
                    chunk_bytes,
                    sample,
                ),
            )
            for number, root in enumerate(outlet.roots)
        ]
        self._lineage = operator.lineage if outlet.roots else ()
        self._counters = lineage_counters(task)
        self.rows = 0
        self.group_results: Int64Array = np.zeros(operator.groups, dtype=np.int64)
        self.lineage_results: dict[int, Int64Array] = {
            of.first: np.zeros(of.groups, dtype=np.int64) for of in self._lineage
        }

    def write_rows(self, hashes: Int64Array, outputs: Sequence[Expression], columns: Columns) -> None:
        operator = self._operator
        own = group_of(hashes, operator.groups)
        self.rows += len(hashes)
        self.group_results += np.bincount(own, minlength=operator.groups)
        for of in self._lineage:
            self.lineage_results[of.first] += self._counters[of.first].count(columns(of.column).to_numpy())
        arrays = output_arrays(operator, len(hashes), outputs, columns)
        produced = Produced(operator.result_schema, hashes, own, arrays)
        for selection, edge_rows in self._edges:
            edge_rows.write(produced.selected(selection))
        for root, files in self._roots:
            selected = produced.selected(root.selection)
            if selected.rows:
                files.write(selected.rows, selected.arrays)

    def close(self) -> Written:
        found: dict[str, Files] = {}
        for root, files in self._roots:
            if written := files.close():
                found[root.name] = (*found.get(root.name, ()), *written)
        return found


class _EdgeRows:
    """Makes rows of an edge input of its consumer, and sends them to the processors of their groups."""

    def __init__(self, placed: PlacedEdge, send: RowSink) -> None:
        self._edge = edge = placed.edge
        self._groups = placed.consumer.groups
        self._targets = np.array(placed.placement, dtype=np.uint16)
        self._names = [TAG_COLUMN, HASH_WIRE_COLUMN, *placed.consumer.inputs[edge.input].slots]
        self._send = send

    def write(self, selected: Produced) -> None:
        edge = self._edge
        if edge.keys and not edge.hashed:
            selected = selected.with_values(edge.keys)
        if not selected.rows:
            return
        hashes = self._hashes(selected)
        tags = pa.array(np.full(selected.rows, edge.input, dtype=np.int8))
        traced = [pa.array(selected.groups.astype(np.uint16))] if edge.traced else []
        batch = pa.RecordBatch.from_arrays(
            [tags, pa.array(hashes), *selected.arrays[edge.keys :], *traced], names=self._names
        )
        targets = self._targets[group_of(hashes, self._groups)]
        first = int(targets[0])
        if bool((targets == first).all()):
            self._send(first, edge.consumer, batch)
            return
        for target in np.unique(targets):
            rows = np.flatnonzero(targets == target)
            self._send(int(target), edge.consumer, batch.take(pa.array(rows)))

    def _hashes(self, selected: Produced) -> Int64Array:
        edge = self._edge
        if not edge.keys:
            return selected.hashes
        keys = selected.arrays[: edge.keys]
        hashes = folded([key.to_numpy() for key in keys]) if edge.hashed else xxhash64(keys)
        return hash_in_group(selected.hashes, hashes) if edge.keeps_group else hashes
