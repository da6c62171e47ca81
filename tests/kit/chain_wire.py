"""A chain of two joins on different keys, and the wire batches that Spark would make for it."""

from typing import Any

import numpy as np
import pyarrow as pa

from kit.wide_rows import PAYLOADS, SQL_TYPES, hashed
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.plan.operators.partitioning import Grid
from spillway.plan.operators.tree import Leaf, TreePlan
from spillway.plan.operators.tree_layout import KeyHash, LeafColumn, leaf_symbols
from spillway.plan.rules.planner import plan_view
from spillway.state.binding.tree import bind_tree
from spillway.state.rows.group import folded, group_of, group_starts, hash_in_group

CHAIN = (
    "SELECT a.id AS a, b.id AS b, c.id AS c, a.p AS ap, b.p AS bp, c.p AS cp "
    "FROM a, b, c WHERE a.x = b.x AND b.y = c.y"
)


class ChainWire:
    """Binds the chain, and makes its batches; `kind` is that of the payloads."""

    def __init__(self, join: str, groups: int, kind: str = "text") -> None:
        self.kind = kind
        columns = (*(Column(name, "bigint") for name in ("id", "x", "y")), Column("p", SQL_TYPES[kind]))
        plan = plan_view(View.sql(CHAIN).with_join(join), dict.fromkeys("abc", columns))
        assert isinstance(plan, TreePlan)
        self.plan = plan
        self.grid = Grid.of(plan.partition, groups) if plan.partition else None
        exact = [not plan.partition and len(node.classes) == 1 for node in plan.joins]
        self.symbols = [leaf_symbols(plan, exact, leaf) for leaf in range(3)]
        slots = [tuple(f"s{leaf}_{n}" for n in range(len(of))) for leaf, of in enumerate(self.symbols)]
        self.operator = bind_tree(plan, exact, self._type, slots, groups)

    def _type(self, symbol: Any) -> pa.DataType:
        if isinstance(symbol, LeafColumn) and self._name(symbol) == "p":
            return PAYLOADS[self.kind]
        return pa.int64()

    def _name(self, symbol: LeafColumn) -> str:
        text = self.plan.inputs[symbol.leaf].columns[symbol.column].expression
        return text.replace("`", "").rsplit(".", 1)[-1]

    def _key(self, leaf: int, key_class: int) -> str:
        text = self.plan.inputs[leaf].keys[self.plan.key_classes[leaf].index(key_class)]
        return text.replace("`", "").rsplit(".", 1)[-1]

    def batch(self, tables: list[pa.Table]) -> pa.RecordBatch:
        return (
            pa.concat_tables(
                [self._leaf(leaf, table) for leaf, table in enumerate(tables)], promote_options="default"
            )
            .combine_chunks()
            .to_batches()[0]
        )

    def _leaf(self, leaf: int, table: pa.Table) -> pa.Table:
        join = next(node for node in self.plan.joins if Leaf(leaf) in node.children)
        hashes = folded([hashed(table[self._key(leaf, key)].to_numpy()) for key in join.classes])
        rows, hashes = self._copies(leaf, table, hashes)
        columns = {"t": pa.array(np.full(len(rows), leaf, dtype=np.int8)), "h": pa.array(hashes)}
        for number, symbol in enumerate(self.symbols[leaf]):
            if isinstance(symbol, LeafColumn):
                values = table[self._name(symbol)]
            else:
                values = table[self._key(leaf, symbol.key_class)]  # type: ignore[union-attr]
            if isinstance(symbol, KeyHash):
                values = pa.array(hashed(values.to_numpy()))
            columns[f"s{leaf}_{number}"] = values.take(pa.array(rows))
        return pa.table(columns)

    def _copies(self, leaf: int, table: pa.Table, hashes: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        """The rows, and the hashes of each; in a grid a row has several copies."""
        rows = np.arange(len(hashes))
        if self.grid is None:
            return rows, hashes
        groups = np.zeros(len(hashes), dtype=np.int64)
        for key, share, weight in zip(self.grid.classes, self.grid.shares, self.grid.weights, strict=True):
            if key in self.plan.key_classes[leaf]:
                mine = group_of(hashed(table[self._key(leaf, key)].to_numpy()), share)
                groups += mine[rows] * weight
            else:
                groups = (groups[:, None] + np.arange(share) * weight).reshape(-1)
                rows = np.repeat(rows, share)
        return rows, hash_in_group(group_starts(self.operator.operators[-1].groups)[groups], hashes[rows])
