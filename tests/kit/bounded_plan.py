"""Views that fill a budget: a three-way join and a chain of two joins, with payloads of every kind.

A plan is described by a few words (`BoundedPlan`), so that the process that makes the input and the process
that runs it need not share more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from kit.chain_wire import ChainWire
from kit.wide_rows import PAYLOADS, hashed, payload
from spillway.manager.budget import Budget
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.operators.partitioning import TREE
from spillway.state.graph.graph import Graph
from spillway.state.graph.outgoing import Outgoing, Quota
from spillway.state.graph.parcel import SCAN
from spillway.state.graph.routing import Routing, fused_stages
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import NO_BOUND, Limits
from spillway.state.step.operator import WireInput

INPUTS, GROUPS = 3, 64


@dataclass(frozen=True, slots=True)
class BoundedPlan:
    shape: str
    """`join` or `tree`."""
    payload: str
    width: int
    memory_bytes: int

    @property
    def graph(self) -> Graph:
        return Graph.of_one(self._join()) if self.shape == "join" else self._chain().operator

    @property
    def budget(self) -> Budget:
        return Budget(self.memory_bytes)

    def write(self, directory: Path, *, rows: int, epochs: int, matches: int, seed: int) -> None:
        """The input as parcels, a directory for each epoch; `rows` is that of all inputs and epochs."""
        chance = np.random.default_rng(seed)
        for number, batch in enumerate(self._batches(chance, rows, epochs, matches)):
            _write_parcels(self.graph, batch, self._round_bytes, directory / f"{number:04d}")

    @property
    def _round_bytes(self) -> int:
        return self.budget.limits(Limits(), INPUTS).round_bytes

    def _batches(
        self, chance: np.random.Generator, rows: int, epochs: int, matches: int
    ) -> Iterator[pa.RecordBatch]:
        each = rows // epochs // INPUTS
        keys = max(1, each * epochs // matches)
        for epoch in range(epochs):
            if self.shape == "join":
                yield self._join_batch(chance, each * INPUTS, keys, epoch)
            else:
                yield self._chain().batch(
                    [self._chain_table(chance, each, keys, epoch) for _ in range(INPUTS)]
                )

    def _join_batch(self, chance: np.random.Generator, rows: int, keys: int, epoch: int) -> pa.RecordBatch:
        arrays = [
            pa.array(chance.integers(0, INPUTS, rows).astype(np.int8)),
            pa.array(hashed(chance.integers(0, keys, rows))),
            pa.array(np.arange(rows) + epoch * rows),
            payload(self.payload, self.width, rows, chance),
        ]
        return pa.RecordBatch.from_arrays(arrays, names=["t", "h", "s0", "s1"])

    def _chain_table(self, chance: np.random.Generator, rows: int, keys: int, epoch: int) -> pa.Table:
        columns = {"id": np.arange(rows) + epoch * rows}
        columns |= {name: chance.integers(0, keys, rows) for name in "xy"}
        return pa.table(columns).append_column("p", payload(self.payload, self.width, rows, chance))

    def _chain(self) -> ChainWire:
        return ChainWire(TREE, GROUPS, self.payload)

    def _join(self) -> JoinOperator:
        fields = [
            (f"{name}{n}", kind)
            for n in range(INPUTS)
            for name, kind in (("id", pa.int64()), ("p", PAYLOADS[self.payload]))
        ]
        return JoinOperator(
            inputs=tuple(WireInput(f"s{number}", ("id", "p"), ("s0", "s1")) for number in range(INPUTS)),
            outputs=tuple(ColumnRef(number, column) for number in range(INPUTS) for column in (0, 1)),
            residual=None,
            key_columns=((),) * INPUTS,
            groups=GROUPS,
            result_schema=pa.schema(fields),
        )


def one_processor(graph: Graph) -> Routing:
    """Where rows go if there is one processor."""
    placement = (0,) * graph.groups
    return Routing(graph, placement, 1, fused_stages(graph, placement))


def _write_parcels(graph: Graph, batch: pa.RecordBatch, parcel_bytes: int, directory: Path) -> None:
    """What a scan task would send, each parcel in a file."""
    routing = one_processor(graph)
    targets = routing.operators_by_target
    outgoing = Outgoing(SCAN, 0, "scan", Quota(NO_BOUND, parcel_bytes), targets, NO_BOUND)
    for target, operator, rows, arrived in routing.split(batch):
        outgoing.write(target, operator, rows, arrived)
    directory.mkdir(parents=True)
    for number, parcel in enumerate(outgoing.packed({})[0]):
        (directory / f"{number:05d}.parcel").write_bytes(parcel)
